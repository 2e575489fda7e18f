//! From a request to its handler. Matched on the path as it came, which a router's patterns do not
//! see the way Go does.

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{Method, Response};
use axum::routing::any;
use tracing::{debug, warn};

use super::answer::{self, Answer, Refusal};
use super::chat::Chat;
use super::path::{MOUNT, Place};
use super::query::Wait;
use super::{list, output, signal, start};
use crate::{App, listen};

/// Everything below `/api/v0/processes`.
pub fn router(app: App) -> Router {
    Router::new()
        .route(MOUNT, any(serve))
        .route(&format!("{MOUNT}/"), any(serve))
        .route(&format!("{MOUNT}/{{*below}}"), any(serve))
        .with_state(app)
}

async fn serve(State(app): State<App>, request: Request) -> Response<Body> {
    let Ok(place) = Place::of(request.uri().path()) else { return answer::bad_escape() };
    if !is_known(request.method()) {
        return answer::wrong_method(None);
    }
    let Some(place) = place else { return answer::nowhere() };
    let allowed = match place {
        Place::Start | Place::Signal(_) => "POST",
        Place::List | Place::Output(_) | Place::Token(_) => "GET",
    };
    match request.method().as_str() == allowed {
        true => answer::response(handle(&app, &place, request).await),
        false => answer::wrong_method(Some(allowed)),
    }
}

fn is_known(method: &Method) -> bool {
    let known = ["CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"];
    known.contains(&method.as_str())
}

async fn handle(app: &App, place: &Place, request: Request) -> Answer {
    let (head, body) = request.into_parts();
    let chat = Chat::of(&head.headers);
    let answer = match place {
        Place::Start => start::start(app, &chat, body).await,
        Place::List => Ok(list::list(app, &chat)),
        Place::Output(id) => output::output(app, &chat, id, Wait::of(head.uri.query())).await,
        Place::Signal(id) => signal::signal(app, &chat, id, body).await,
        Place::Token(token) => start::by_token(app, &chat, token),
    };
    tell(&head.method, head.uri.path(), &chat, answer.as_ref().err());
    answer
}

/// In the log, with whom it was for.
fn tell(method: &Method, path: &str, chat: &Chat, refusal: Option<&Refusal>) {
    let Chat { own: chat, ancestors } = chat;
    match refusal {
        Some(refusal) if refusal.is_ours() => {
            warn!(%method, path, ?chat, ?ancestors, ?refusal, "a request failed");
        }
        Some(_) | None => debug!(%method, path, ?chat, ?ancestors, ?refusal, "a request"),
    }
}

/// The whole body, within the bounds.
pub(super) async fn read_body(app: &App, body: Body) -> Result<Bytes, Refusal> {
    listen::body::collect(body, &app.limits).await.map_err(|error| Refusal::of(&error))
}
