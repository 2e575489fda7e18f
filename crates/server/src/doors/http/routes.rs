//! The routes, and one handler for each verb.

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{StatusCode, Uri};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use lastbyte_engine::{Filter, PhaseIs};
use lastbyte_wire::{Error, ErrorCode, Health, OPENAPI, Root};

use super::answer::{Answer, Refusal, json, nothing, ok};
use super::input::Target;
use super::{attach, events, follow, input, output};
use crate::verbs::{forget, list, resize, search, show, signal, start, stop, times, wait, write};
use crate::{App, to_wire};

/// Everything that the native door offers.
pub fn router(app: App) -> Router {
    let process = Router::new()
        .route("/", get(show_process).delete(forget_process))
        .route("/output", get(output::read_output))
        .route("/output/search", get(search_output))
        .route("/output/times", get(tell_times))
        .route("/follow", get(follow::follow_output))
        .route("/attach", get(attach::attach_to_process))
        .route("/survivors", get(list_survivors))
        .route("/wait", post(wait_for_process))
        .route("/stdin", post(write_to_process))
        .route("/signal", post(signal_process))
        .route("/stop", post(stop_process))
        .route("/resize", post(resize_process));
    Router::new()
        .route("/v1", get(tell_version))
        .route("/v1/processes", get(list_processes).post(start_process))
        .nest("/v1/processes/{id}", process)
        .route("/v1/events", get(events::read_events))
        .route("/v1/shutdown", post(shut_down))
        .route("/openapi.json", get(tell_api))
        .route("/healthz", get(tell_health))
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
        .with_state(app)
}

async fn tell_api() -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], OPENAPI)
}

async fn tell_version() -> Answer {
    ok(&Root { name: "lastbyte".into(), version: env!("CARGO_PKG_VERSION").into() })
}

async fn start_process(State(app): State<App>, body: Body) -> Answer {
    let request = input::json(&app, body).await?;
    let answer = start::start(&app, &request).await?;
    let status = if answer.attached { StatusCode::OK } else { StatusCode::CREATED };
    Ok(json(status, &answer))
}

async fn list_processes(State(app): State<App>, uri: Uri) -> Answer {
    ok(&list::list(&app, &input::query(&uri)?)?)
}

async fn show_process(Target(process): Target) -> Answer {
    ok(&show::show(&process))
}

async fn search_output(State(app): State<App>, Target(process): Target, uri: Uri) -> Answer {
    let query = input::query(&uri)?;
    ok(&search::search(&app, &process, &query).await?)
}

async fn tell_times(Target(process): Target, uri: Uri) -> Answer {
    ok(&times::times(&process, &input::query(&uri)?).await?)
}

async fn list_survivors(Target(process): Target) -> Answer {
    ok(&show::survivors(&process).await)
}

async fn forget_process(State(app): State<App>, Target(process): Target, uri: Uri) -> Answer {
    let query = input::query(&uri)?;
    forget::forget(&app, &process, &query).await?;
    nothing(StatusCode::NO_CONTENT)
}

async fn wait_for_process(State(app): State<App>, Target(process): Target, body: Body) -> Answer {
    let conditions = input::json(&app, body).await?;
    ok(&wait::wait(&app, &process, &conditions).await?)
}

async fn write_to_process(
    State(app): State<App>,
    Target(process): Target,
    uri: Uri,
    body: Body,
) -> Answer {
    let query = input::query(&uri)?;
    let bytes = input::bytes(&app, body).await?;
    ok(&write::write(&process, bytes.into(), &query).await?)
}

async fn signal_process(State(app): State<App>, Target(process): Target, body: Body) -> Answer {
    let request = input::json(&app, body).await?;
    ok(&signal::signal(&process, &request).await?)
}

async fn stop_process(State(app): State<App>, Target(process): Target, body: Body) -> Answer {
    let request = input::json(&app, body).await?;
    ok(&stop::stop(&process, &request).await?)
}

async fn resize_process(State(app): State<App>, Target(process): Target, body: Body) -> Answer {
    let request = input::json(&app, body).await?;
    resize::resize(&process, &request).await?;
    nothing(StatusCode::NO_CONTENT)
}

async fn shut_down(State(app): State<App>) -> Answer {
    app.ask_for_shutdown();
    nothing(StatusCode::ACCEPTED)
}

async fn tell_health(State(app): State<App>) -> Answer {
    let all = app.engine.list(&Filter::default(), None, usize::MAX).processes;
    let running = all.iter().filter(|(_, now)| PhaseIs::of(&now.phase) == PhaseIs::Running);
    ok(&Health {
        version: env!("CARGO_PKG_VERSION").into(),
        pid: std::process::id(),
        started_unix_ns: to_wire::unix_ns(app.started),
        running: running.count() as u64,
        processes: all.len() as u64,
        reach: to_wire::reach(app.engine.reach()),
    })
}

async fn no_route(uri: Uri) -> impl IntoResponse {
    let message = format!("there is nothing at {}", uri.path());
    Refusal(Error::new(ErrorCode::RouteNotFound, message))
}

async fn no_method(method: axum::http::Method, uri: Uri) -> impl IntoResponse {
    let message = format!("{} does not take {method}", uri.path());
    Refusal(Error::new(ErrorCode::MethodNotAllowed, message))
}
