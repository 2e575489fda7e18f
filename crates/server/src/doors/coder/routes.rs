//! From a request to its handler. Matched on the path as it came, which a router's patterns do not
//! see the way Go does.

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use lastbyte_engine::Histogram;
use tracing::{debug, warn};

use super::answer::{self, Answer, Refusal};
use super::chat::Chat;
use super::path::{Endpoint, MOUNT, ROUTES, WaitFor};
use super::{list, output, signal, start};
use crate::App;
use crate::listen::Needs;
use crate::metrics::{Answered, waited};

/// The method and the path of every route.
pub fn offered() -> impl Iterator<Item = (&'static str, &'static str)> {
    ROUTES.into_iter()
}

/// Everything below `/api/v0/processes`.
pub fn router(app: App) -> Router {
    let answered = ROUTES.map(|route| app.answers.route(route, Some(Histogram::default())));
    Router::new()
        .route(MOUNT, any(serve))
        .route(&format!("{MOUNT}/"), any(serve))
        .route(&format!("{MOUNT}/{{*below}}"), any(serve))
        .with_state(Routes { app, answered: Arc::new(answered) })
}

/// What the handler of all of it has.
#[derive(Clone)]
struct Routes {
    app: App,
    /// The numbers of each of [`ROUTES`].
    answered: Arc<[Arc<Answered>; ROUTES.len()]>,
}

async fn serve(State(routes): State<Routes>, request: Request) -> Response {
    let Ok(endpoint) = Endpoint::from_path(request.uri().path()) else {
        return answer::bad_escape();
    };
    if !is_known(request.method()) {
        return answer::wrong_method(None);
    }
    let Some(endpoint) = endpoint else { return answer::not_found_page() };
    let (allowed, _) = ROUTES[endpoint.route()];
    if request.method().as_str() != allowed {
        return answer::wrong_method(Some(allowed));
    }
    timed(&routes, &endpoint, request).await
}

async fn timed(routes: &Routes, endpoint: &Endpoint, request: Request) -> Response {
    let (asked, wait) = (Instant::now(), WaitFor::from_query(request.uri().query()));
    let handled = handle(&routes.app, endpoint, wait, request).await;
    let mut answer = handled.unwrap_or_else(Refusal::into_response);
    if matches!((endpoint, wait), (Endpoint::Output(_), WaitFor::Ending)) {
        answer = waited(answer);
    }
    routes.answered[endpoint.route()].note(&answer, asked.elapsed());
    answer
}

fn is_known(method: &Method) -> bool {
    let known = ["CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"];
    known.contains(&method.as_str())
}

async fn handle(app: &App, endpoint: &Endpoint, wait: WaitFor, request: Request) -> Answer {
    let (head, body) = request.into_parts();
    let Some(app) = &app.seen_by(&head.extensions) else {
        return Err(Refusal::new(StatusCode::UNAUTHORIZED, "Missing token."));
    };
    app.scope.check(needs(endpoint)).map_err(|error| Refusal::forbidden(&error))?;
    let chat = Chat::new(&head.headers, &app.scope);
    let answer = match endpoint {
        Endpoint::Start => start::start(app, &chat, body).await,
        Endpoint::List => list::list(app, &chat),
        Endpoint::Output(id) => output::output(app, &chat, id, wait).await,
        Endpoint::Signal(id) => signal::signal(app, &chat, id, body).await,
        Endpoint::Token(token) => start::by_token(app, &chat, token),
    };
    log(&head.method, head.uri.path(), &chat, answer.as_ref().err());
    answer
}

fn needs(endpoint: &Endpoint) -> Needs {
    match endpoint {
        Endpoint::Start | Endpoint::Signal(_) => Needs::Change,
        Endpoint::List | Endpoint::Output(_) | Endpoint::Token(_) => Needs::Read,
    }
}

/// In the log, with whom it was for.
fn log(method: &Method, path: &str, chat: &Chat, refusal: Option<&Refusal>) {
    let Chat { own: chat, ancestors } = chat;
    match refusal {
        Some(refusal) if refusal.status.is_server_error() => {
            warn!(%method, path, ?chat, ?ancestors, ?refusal, "a request failed");
        }
        Some(_) | None => debug!(%method, path, ?chat, ?ancestors, ?refusal, "a request"),
    }
}
