//! `POST /mcp`: from an HTTP request to rmcp, with the client of the request.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::Response;
use axum::response::IntoResponse;
use axum::routing::post;
use bytes::Bytes;
use http_body_util::Full;
use lastbyte_wire::{Error, ErrorCode};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::Value;

use super::client::{Client, complete_headers, minted_session};
use super::handler::Handler;
use super::invalid;
use crate::App;
use crate::listen::refusal;
use crate::metrics::Answered;

const PATH: &str = "/mcp";

/// The method and the path of every route.
pub fn offered() -> impl Iterator<Item = (&'static str, &'static str)> {
    std::iter::once(("POST", PATH))
}

/// `/mcp`.
pub fn router(app: App) -> Router {
    // Most calls wait for a process: their times say nothing of the server.
    let answered = app.answers.route(("POST", PATH), None);
    let protocol = protocol(app.limits.body_bytes);
    Router::new().route(PATH, post(serve)).with_state(Door { app, protocol, answered })
}

type Protocol = StreamableHttpService<Handler, NeverSessionManager>;

#[derive(Clone)]
struct Door {
    app: App,
    protocol: Protocol,
    answered: Arc<Answered>,
}

/// Without sessions of its own, and without checks that were made before.
fn protocol(body_bytes: usize) -> Protocol {
    let handler = Handler::default();
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_sse_keep_alive(Some(Duration::from_secs(15)))
        .with_max_request_body_bytes(body_bytes)
        .disable_allowed_hosts()
        .disable_allowed_origins();
    StreamableHttpService::new(move || Ok(handler.clone()), Arc::default(), config)
}

async fn serve(State(door): State<Door>, request: Request) -> Response<Body> {
    let asked = Instant::now();
    let answer = door.answer(request).await.unwrap_or_else(refusal);
    door.answered.note(&answer, asked.elapsed());
    answer
}

impl Door {
    async fn answer(&self, request: Request) -> Result<Response<Body>, Error> {
        let (mut head, body) = request.into_parts();
        let app = self.app.seen_by(&head.extensions);
        let app = app.ok_or_else(|| Error::new(ErrorCode::Unauthorized, "missing token"))?;
        let body: Bytes = app.body(body).await?;
        let message: Value = match serde_json::from_slice(&body) {
            Ok(message) => message,
            Err(error) => return Ok(invalid::json(&error)),
        };
        if let Some(answer) = invalid::tool_call(&message) {
            return Ok(answer);
        }
        complete_headers(&mut head.headers, &message);
        let client = Client::new(&app, &head.headers)?;
        let is_handshake = message["method"] == "initialize";
        let minted = is_handshake.then(|| minted_session(&head.headers)).flatten();
        head.extensions.insert(client);
        let request = Request::from_parts(head, Full::new(body));
        let mut answer = self.protocol.handle(request).await.map(Body::new);
        if let Some((name, id)) = minted.filter(|_| answer.status().is_success()) {
            answer.headers_mut().insert(name, id);
        }
        Ok(invalid::as_message(answer.into_response(), &message).await)
    }
}
