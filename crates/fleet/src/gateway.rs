//! A gateway: an HTTP server with the native routes, which passes requests on to the nodes that they
//! are about, and puts the answers of several together.
//!
//! `nodes` is who there is, `forward` one request to one node, `locate` the node of a process,
//! `list` and `many` put answers together, `start` and `claims` place a command, `events` merges feeds.

mod claims;
mod events;
mod forward;
mod list;
mod locate;
mod many;
mod nodes;
mod start;

use std::borrow::Cow;
use std::sync::Arc;

use async_nats::Client;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Method, Response, StatusCode, Uri, header};
use axum::response::IntoResponse;
use axum::routing::{any, delete, get, post};
use lastbyte_server::listen::{Grant, Needs, Scope, refusal};
use lastbyte_wire::{Error, ErrorCode, NodesAnswer};
use percent_encoding::percent_decode_str;
use serde_json::Value;

use crate::carry::Streams;
use crate::connect::{Broker, JoinError, check_connected};
use claims::Claims;
use nodes::Nodes;

/// Knows the fleet, and sends requests to its nodes. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Gateway {
    own: Arc<Own>,
}

#[derive(Debug)]
struct Own {
    client: Client,
    streams: Streams,
    nodes: Arc<Nodes>,
    claims: Claims,
}

/// The answer of a handler.
type Answer = Result<Response<Body>, Error>;

impl Gateway {
    /// Connects, and waits until it knows the nodes.
    pub async fn connect(broker: &Broker) -> Result<Self, JoinError> {
        let client = broker.connect("lastbyte gateway").await?;
        let streams = Streams::new(client.clone()).await;
        let streams = streams.map_err(|error| JoinError::Subscribe { source: error.into() })?;
        let nodes = Nodes::watch(&client).await?;
        let claims = Claims::new(client.clone());
        Ok(Self { own: Arc::new(Own { client, streams, nodes, claims }) })
    }

    /// The routes that are about processes and nodes. All others are the fallback's.
    pub fn router(&self, fallback: Router) -> Router {
        let routes = Router::new()
            .route("/v1/processes", get(list_processes).post(start_process))
            .route("/v1/processes/{id}", any(to_process))
            .route("/v1/processes/{id}/{*rest}", any(to_process))
            .route("/v1/wait", post(wait_for_processes))
            .route("/v1/signal", post(change_processes))
            .route("/v1/stop", post(change_processes))
            .route("/v1/forget", post(change_processes))
            .route("/v1/events", get(read_events))
            .route("/v1/nodes", get(list_nodes))
            .route("/v1/nodes/{node}", delete(forget_node))
            .route("/v1/nodes/{node}/drain", post(drain_node))
            .with_state(self.clone());
        // What would start commands or look at them here: a gateway has no commands.
        let elsewhere = Router::new()
            .route("/mcp", any(not_here))
            .route("/codex", any(not_here))
            .route("/api/{*rest}", any(not_here));
        let routes = routes.merge(elsewhere).method_not_allowed_fallback(no_method);
        routes.fallback_service(fallback)
    }

    /// The same without a server behind it.
    pub fn alone(&self) -> Router {
        let nothing = || async {
            refusal(Error::new(ErrorCode::RouteNotFound, "a gateway of a fleet has no such route"))
        };
        self.router(Router::new().fallback(nothing))
    }

    fn nodes(&self) -> &Nodes {
        &self.own.nodes
    }
}

/// What a request may see and do.
fn scope(request: &Request) -> Result<Scope, Error> {
    let missing = || Error::new(ErrorCode::Unauthorized, "missing token");
    Ok(request.extensions().get::<Grant>().ok_or_else(missing)?.scope.clone())
}

fn answer(result: Answer) -> Response<Body> {
    result.unwrap_or_else(refusal)
}

fn json(status: StatusCode, value: &impl serde::Serialize) -> Response<Body> {
    let text = serde_json::to_string(value).expect("values of the API are JSON");
    (status, [(header::CONTENT_TYPE, "application/json")], text).into_response()
}

/// The whole body of a request as JSON; an empty one is an empty object.
async fn body(body: Body) -> Result<Value, Error> {
    let limits = lastbyte_server::Limits::default();
    let bytes = lastbyte_server::listen::body::collect(body, &limits).await?;
    let text = if bytes.is_empty() { b"{}" } else { &bytes[..] };
    let invalid = |error| Error::new(ErrorCode::InvalidRequest, format!("invalid body: {error}"));
    let value: Value = serde_json::from_slice(text).map_err(invalid)?;
    if value.is_object() {
        return Ok(value);
    }
    Err(Error::new(ErrorCode::InvalidRequest, "invalid body: expected an object"))
}

/// What stands in the path after `/v1/KIND/`. What is not UTF-8 stands for itself, as on a node.
fn named_in(uri: &Uri) -> String {
    let name = uri.path().split('/').nth(3).unwrap_or_default();
    let decoded = percent_decode_str(name).decode_utf8();
    decoded.map_or_else(|_| name.to_owned(), Cow::into_owned)
}

async fn to_process(State(gateway): State<Gateway>, request: Request) -> Response<Body> {
    let id = named_in(request.uri());
    let sent = async {
        let scope = scope(&request)?;
        let found = gateway.locate(&scope, &id).await?;
        gateway.forward_to_process(&found, &scope, request).await
    };
    answer(sent.await)
}

async fn list_processes(State(gateway): State<Gateway>, request: Request) -> Response<Body> {
    let (scope, uri) = (scope(&request), request.uri().clone());
    answer(async { gateway.list(&scope?, &uri).await }.await)
}

async fn start_process(State(gateway): State<Gateway>, request: Request) -> Response<Body> {
    let started = async {
        let scope = scope(&request)?;
        gateway.start(&scope, body(request.into_body()).await?).await
    };
    answer(started.await)
}

async fn wait_for_processes(State(gateway): State<Gateway>, request: Request) -> Response<Body> {
    let waited = async {
        let scope = scope(&request)?;
        gateway.wait_many(&scope, body(request.into_body()).await?).await
    };
    answer(waited.await)
}

async fn change_processes(State(gateway): State<Gateway>, request: Request) -> Response<Body> {
    let changed = async {
        let (scope, path) = (scope(&request)?, request.uri().path().to_owned());
        gateway.change_many(&scope, &path, body(request.into_body()).await?).await
    };
    answer(changed.await)
}

async fn read_events(State(gateway): State<Gateway>, request: Request) -> Response<Body> {
    let (scope, (head, _)) = (scope(&request), request.into_parts());
    answer(async { gateway.events(scope?, &head.headers, &head.uri).await }.await)
}

async fn list_nodes(State(gateway): State<Gateway>, request: Request) -> Response<Body> {
    let listed = scope(&request).and_then(|scope| {
        scope.check(Needs::ReadServer)?;
        check_connected(&gateway.own.client)?;
        gateway.nodes().check_listed()?;
        Ok(json(StatusCode::OK, &NodesAnswer { nodes: gateway.nodes().all() }))
    });
    answer(listed)
}

async fn drain_node(State(gateway): State<Gateway>, request: Request) -> Response<Body> {
    let drained = async {
        let node = named_in(request.uri());
        let scope = scope(&request)?;
        scope.check(Needs::Administer)?;
        gateway.nodes().check_known(&node)?;
        gateway.forward(&node, &scope, request).await
    };
    answer(drained.await)
}

async fn forget_node(State(gateway): State<Gateway>, request: Request) -> Response<Body> {
    let (scope, node) = (scope(&request), named_in(request.uri()));
    let forgotten = async {
        scope?.check(Needs::Administer)?;
        check_connected(&gateway.own.client)?;
        gateway.nodes().check_known(&node)?;
        gateway.nodes().forget(&gateway.own.client, &node).await?;
        Ok(StatusCode::NO_CONTENT.into_response())
    };
    answer(forgotten.await)
}

async fn no_method(method: Method, uri: Uri) -> Response<Body> {
    let message = format!("{} does not support {method}", uri.path());
    refusal(Error::new(ErrorCode::MethodNotAllowed, message))
}

async fn not_here() -> Response<Body> {
    let message = "a gateway of a fleet does not offer this";
    refusal(Error::new(ErrorCode::RouteNotFound, message).hint("ask a node itself"))
}
