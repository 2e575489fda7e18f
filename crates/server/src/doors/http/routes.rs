//! The list of routes, one handler for each verb, and the clock that runs while a route answers.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::handler::Handler;
use axum::http::header::CONTENT_TYPE;
use axum::http::{Response, StatusCode, Uri};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::IntoResponse;
use axum::routing::{self, MethodRouter};
use axum::{Extension, Router};
use lastbyte_engine::Histogram;
use lastbyte_wire::{
    Error, ErrorCode, ForgetManyRequest, ForgetQuery, Health, HealthStatus, JournalHealth, OPENAPI,
    Root, StartRequest,
};
use tokio::task::spawn_blocking;

use super::answer::{Answer, Refusal, after_a_wait, json, ok};
use super::input::{Anybody, Caller, Routed, Target};
use super::{attach, events, follow, input, output};
use crate::listen::{Grant, Needs, Peer};
use crate::metrics::{Answered, page};
use crate::verbs::refusal::broken;
use crate::verbs::{
    control, lines, links, list, receipt, search, start, times, tokens, upgrade, wait, write,
};
use crate::{App, to_wire};

const PROCESSES: &str = "/v1/processes";
const PROCESS: &str = "/v1/processes/{id}";

/// All there is, in one list: what is not in it is not served, and a test compares it with the
/// OpenAPI document.
fn routes() -> Vec<Route> {
    vec![
        Route::get("/v1", tell_version).needs(Needs::Nothing),
        Route::get(PROCESSES, list_processes),
        Route::post(PROCESSES, start_process),
        Route::get(PROCESS, show_process).needs(Needs::ReadProcess),
        Route::delete(PROCESS, forget_process),
        Route::get("/v1/processes/{id}/receipt", give_receipt).needs(Needs::ReadProcess),
        Route::get("/v1/processes/{id}/output", output::read_output).needs(Needs::ReadProcess),
        Route::get("/v1/processes/{id}/output/search", search_output).needs(Needs::ReadProcess),
        Route::get("/v1/processes/{id}/output/lines", find_lines).needs(Needs::ReadProcess),
        Route::get("/v1/processes/{id}/output/times", tell_times).needs(Needs::ReadProcess),
        Route::get("/v1/processes/{id}/follow", follow::follow_output).needs(Needs::ReadProcess),
        // Its client can write.
        Route::get("/v1/processes/{id}/attach", attach::attach_to_process)
            .needs(Needs::WriteProcess),
        Route::get("/v1/processes/{id}/survivors", list_survivors).needs(Needs::ReadProcess),
        Route::post("/v1/processes/{id}/wait", wait_for_process)
            .that_waits()
            .needs(Needs::ReadProcess),
        Route::post("/v1/processes/{id}/stdin", write_to_process).needs(Needs::WriteProcess),
        Route::post("/v1/processes/{id}/signal", signal_process),
        Route::post("/v1/processes/{id}/stop", stop_process).that_waits(),
        Route::post("/v1/processes/{id}/resize", resize_process).needs(Needs::WriteProcess),
        Route::post("/v1/wait", wait_for_processes).that_waits().needs(Needs::Read),
        Route::post("/v1/signal", signal_processes),
        Route::post("/v1/stop", stop_processes).that_waits(),
        Route::post("/v1/forget", forget_processes),
        Route::get("/v1/events", events::read_events),
        Route::post("/v1/shutdown", shut_down).needs(Needs::Administer),
        Route::post("/v1/upgrade", upgrade_server).that_waits().needs(Needs::Administer),
        Route::post("/v1/tokens", create_token).needs(Needs::Administer),
        Route::get("/v1/tokens", list_tokens).needs(Needs::Administer),
        Route::delete("/v1/tokens/{token}", revoke_token).needs(Needs::Administer),
        Route::post("/v1/links", create_link).needs(Needs::Link),
        Route::post("/v1/links/trade", trade_link).needs(Needs::Nothing),
        Route::post("/v1/tickets", create_ticket).needs(Needs::Nothing),
        Route::get("/v1/nodes", needs_gateway),
        Route::delete("/v1/nodes/{node}", needs_gateway).needs(Needs::Administer),
        Route::post("/v1/nodes/{node}/drain", needs_gateway).needs(Needs::Administer),
        Route::get("/openapi.json", tell_api).needs(Needs::Nothing),
        Route::get("/healthz", tell_health).needs(Needs::Nothing),
        Route::get("/metrics", tell_metrics).needs(Needs::ReadServer),
    ]
}

/// The method and the path of every route.
pub fn offered() -> impl Iterator<Item = (&'static str, &'static str)> {
    routes().into_iter().map(|route| (route.method, route.path))
}

/// Everything that the native door offers.
pub fn router(app: App) -> Router {
    let add = |router: Router<Routed>, route: Route| {
        let Route { method, path, needs, answers, times } = route;
        let answered = app.answers.route((method, path), times);
        router.route(path, answers.route_layer(from_fn_with_state((answered, needs), admitted)))
    };
    routes()
        .into_iter()
        .fold(Router::new(), add)
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
        .with_state(Routed::new(app))
}

/// Made with its handler, so that the method it is known by is the one it answers to.
struct Route {
    method: &'static str,
    path: &'static str,
    needs: Needs,
    answers: MethodRouter<Routed>,
    times: Option<Histogram>,
}

impl Route {
    fn get<T: 'static>(path: &'static str, handler: impl Handler<T, Routed>) -> Self {
        Self::new("GET", path, routing::get(handler))
    }

    fn post<T: 'static>(path: &'static str, handler: impl Handler<T, Routed>) -> Self {
        Self::new("POST", path, routing::post(handler))
    }

    fn delete<T: 'static>(path: &'static str, handler: impl Handler<T, Routed>) -> Self {
        Self::new("DELETE", path, routing::delete(handler))
    }

    /// As a route that is there to wait for processes: its times say nothing of the server.
    fn that_waits(self) -> Self {
        Self { times: None, ..self }
    }

    /// Other than that a GET reads and everything else changes something.
    fn needs(self, needs: Needs) -> Self {
        Self { needs, ..self }
    }

    fn new(method: &'static str, path: &'static str, answers: MethodRouter<Routed>) -> Self {
        let needs = if method == "GET" { Needs::Read } else { Needs::Change };
        Self { method, path, needs, answers, times: Some(Histogram::default()) }
    }
}

/// Refuses what the scope of the request does not allow. Notes how long a route took to the head of
/// its answer.
async fn admitted(
    State((answered, needs)): State<(Arc<Answered>, Needs)>,
    request: Request,
    next: Next,
) -> Response<Body> {
    let asked = Instant::now();
    let grant = request.extensions().get::<Grant>();
    let answer = match grant.map_or(Ok(()), |grant| grant.check(needs)) {
        Ok(()) => next.run(request).await,
        Err(error) => Refusal(error).into_response(),
    };
    answered.note(&answer, asked.elapsed());
    answer
}

async fn tell_metrics(Caller(app): Caller) -> Answer {
    // Off the runtime: it looks at every process and at every descriptor.
    let text = spawn_blocking(move || page(&app)).await;
    let text = text.map_err(|_| broken("collecting the metrics"))?;
    // Version 0.0.4 is the text format that every collector takes.
    Ok(([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response())
}

async fn tell_api() -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], OPENAPI)
}

async fn tell_version() -> Answer {
    ok(&Root { name: "lastbyte".into(), version: env!("CARGO_PKG_VERSION").into() })
}

async fn start_process(Caller(app): Caller, body: Body) -> Answer {
    let request: StartRequest = input::json(&app, body).await?;
    let started = start::start(&app, &request).await;
    let status = |attached| if attached { StatusCode::OK } else { StatusCode::CREATED };
    let answer = started.map(|started| json(status(started.attached), &started));
    let answer = answer.map_err(Refusal);
    if request.wait.is_some() { after_a_wait(answer) } else { answer }
}

async fn list_processes(Caller(app): Caller, uri: Uri) -> Answer {
    ok(&list::list(&app, &input::query(&uri)?).await?)
}

async fn show_process(Target(process): Target) -> Answer {
    ok(&list::show(&process))
}

async fn give_receipt(Caller(app): Caller, Target(process): Target) -> Answer {
    ok(&receipt::receipt(&app, &process).await?)
}

async fn search_output(Caller(app): Caller, Target(process): Target, uri: Uri) -> Answer {
    let query = input::query(&uri)?;
    ok(&search::search(&app, &process, &query).await?)
}

async fn find_lines(Caller(app): Caller, Target(process): Target, uri: Uri) -> Answer {
    ok(&lines::lines(&app, &process, &input::query(&uri)?).await?)
}

async fn tell_times(Target(process): Target, uri: Uri) -> Answer {
    ok(&times::times(&process, &input::query(&uri)?).await?)
}

async fn list_survivors(Target(process): Target) -> Answer {
    ok(&list::survivors(&process).await)
}

async fn forget_process(Caller(app): Caller, Target(process): Target, uri: Uri) -> Answer {
    let query: ForgetQuery = input::query(&uri)?;
    let forgotten = control::forget(&app, &process, &query).await.map_err(Refusal);
    let answer = forgotten.map(|()| StatusCode::NO_CONTENT.into_response());
    // A stop takes as long as its grace.
    if query.stop == Some(true) { after_a_wait(answer) } else { answer }
}

async fn wait_for_process(Caller(app): Caller, Target(process): Target, body: Body) -> Answer {
    let conditions = input::json(&app, body).await?;
    ok(&wait::wait(&app, &process, &conditions).await?)
}

async fn write_to_process(
    Caller(app): Caller,
    Target(process): Target,
    uri: Uri,
    body: Body,
) -> Answer {
    let query = input::query(&uri)?;
    let bytes = app.body(body).await?;
    ok(&write::write(&process, bytes.into(), &query).await?)
}

async fn signal_process(Caller(app): Caller, Target(process): Target, body: Body) -> Answer {
    let request = input::json(&app, body).await?;
    ok(&control::signal(&process, &request).await?)
}

async fn stop_process(Caller(app): Caller, Target(process): Target, body: Body) -> Answer {
    let request = input::json(&app, body).await?;
    ok(&control::stop(&process, &request).await?)
}

async fn wait_for_processes(Caller(app): Caller, body: Body) -> Answer {
    let request = input::json(&app, body).await?;
    ok(&wait::wait_many(&app, &request).await?)
}

async fn signal_processes(Caller(app): Caller, body: Body) -> Answer {
    let request = input::json(&app, body).await?;
    ok(&control::signal_many(&app, &request).await?)
}

async fn stop_processes(Caller(app): Caller, body: Body) -> Answer {
    let request = input::json(&app, body).await?;
    ok(&control::stop_many(&app, &request).await?)
}

async fn forget_processes(Caller(app): Caller, body: Body) -> Answer {
    let request: ForgetManyRequest = input::json(&app, body).await?;
    let answer = control::forget_many(&app, &request).await.map_err(Refusal);
    let answer = answer.map(|forgotten| json(StatusCode::OK, &forgotten));
    if request.stop == Some(true) { after_a_wait(answer) } else { answer }
}

async fn resize_process(Caller(app): Caller, Target(process): Target, body: Body) -> Answer {
    let request = input::json(&app, body).await?;
    control::resize(&process, &request).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn shut_down(Caller(app): Caller) -> StatusCode {
    app.ask_for_shutdown();
    StatusCode::ACCEPTED
}

async fn upgrade_server(Caller(app): Caller, body: Body) -> Answer {
    let request = input::json(&app, body).await?;
    Ok(json(StatusCode::ACCEPTED, &upgrade::upgrade(&app, &request).await?))
}

async fn create_token(Caller(app): Caller, body: Body) -> Answer {
    let request = input::json(&app, body).await?;
    Ok(json(StatusCode::CREATED, &tokens::create(&app, request).await?))
}

async fn list_tokens(Caller(app): Caller) -> Answer {
    ok(&tokens::list(&app))
}

async fn revoke_token(Caller(app): Caller, Path(id): Path<String>) -> Answer {
    tokens::revoke(&app, id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn create_link(Caller(app): Caller, body: Body) -> Answer {
    let request = input::json(&app, body).await?;
    Ok(json(StatusCode::CREATED, &links::create(&app, &request).await?))
}

async fn trade_link(caller: Anybody, peer: Option<Extension<Peer>>, body: Body) -> Answer {
    let (Anybody::Caller(app) | Anybody::Public(app)) = caller;
    let request = input::json(&app, body).await?;
    ok(&links::trade(&app, peer.map(|Extension(peer)| peer), request).await?)
}

/// What only a gateway has.
async fn needs_gateway() -> Answer {
    let message = "this server is no gateway: it has no nodes";
    Err(Error::new(ErrorCode::NotAGateway, message).hint("start one with `serve --gateway`").into())
}

async fn create_ticket(Caller(app): Caller) -> Answer {
    Ok(json(StatusCode::CREATED, &links::ticket(&app)?))
}

/// Without a token it tells nothing of processes.
async fn tell_health(caller: Anybody) -> Answer {
    let (app, is_public) = match caller {
        Anybody::Caller(app) => (app, false),
        Anybody::Public(app) => (app, true),
    };
    let tells_counts = !is_public && app.scope.only().is_none();
    let phases = tells_counts.then(|| app.engine.phases_within(app.session()));
    let journal = to_wire::journal(app.engine.journal_now());
    let keeper = app.keeper_health();
    ok(&Health {
        version: env!("CARGO_PKG_VERSION").into(),
        pid: keeper.as_ref().map_or_else(std::process::id, |keeper| keeper.pid),
        started_unix_ns: to_wire::unix_ns(app.started),
        running: phases.map(|phases| phases.running),
        processes: phases.map(|phases| phases.all()),
        reach: to_wire::reach(app.engine.reach()),
        status: match journal {
            JournalHealth::Off | JournalHealth::Ok => HealthStatus::Ok,
            // Still 200: a supervisor that restarts the server for it loses what waits.
            JournalHealth::Waiting { .. } => HealthStatus::Degraded,
        },
        journal,
        keeper,
        retention: Some(to_wire::retention(app.engine.retention())),
    })
}

async fn no_route(uri: Uri) -> impl IntoResponse {
    let message = format!("no such route: {}", uri.path());
    let hint = "GET /openapi.json lists the routes";
    Refusal(Error::new(ErrorCode::RouteNotFound, message).hint(hint))
}

async fn no_method(method: axum::http::Method, uri: Uri) -> impl IntoResponse {
    let message = format!("{} does not support {method}", uri.path());
    Refusal(Error::new(ErrorCode::MethodNotAllowed, message))
}
