//! One request to one node, as an HTTP connection over a stream of the broker.

use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::header::{
    AUTHORIZATION, CONNECTION, COOKIE, HOST, HeaderName, HeaderValue, ORIGIN, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE,
};
use axum::http::{HeaderMap, Method, Request, Response, StatusCode};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use lastbyte_server::listen::{Grant, Scope};
use lastbyte_wire::{Error, ErrorBody, ErrorCode};
use serde_json::Value;
use tokio::io::copy_bidirectional;
use tokio::time::timeout;
use uuid::Uuid;

use super::{Answer, Gateway};
use crate::carry::{Connection, Ended, Why};
use crate::connect::check_connected;
use crate::subject;

/// What concerns one connection, and what was for the gateway.
const NOT_PASSED_ON: [HeaderName; 9] =
    [CONNECTION, HOST, TE, TRAILER, TRANSFER_ENCODING, UPGRADE, AUTHORIZATION, ORIGIN, COOKIE];
/// A name without a constant.
const KEEP_ALIVE: &str = "keep-alive";

/// The bytes of an answer that is put together with others.
const MOST_BYTES: usize = 64 << 20;

/// What a node has answered, whole.
#[derive(Debug)]
pub(super) struct Whole {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Value,
}

impl Whole {
    /// The error in it, unless it is a success.
    pub(super) fn into_success(self) -> Result<Value, Error> {
        if self.status.is_success() {
            return Ok(self.body);
        }
        let body: Result<ErrorBody, _> = serde_json::from_value(self.body);
        let foreign = |_| Error::new(ErrorCode::Failed, format!("a node answered {}", self.status));
        Err(body.map(|body| body.error).unwrap_or_else(foreign))
    }
}

impl Gateway {
    /// Sends a request on as it is, and gives the answer as it comes.
    pub(super) async fn forward(
        &self,
        node: &str,
        scope: &Scope,
        mut request: Request<Body>,
    ) -> Answer {
        let client = request.extensions_mut().remove::<hyper::upgrade::OnUpgrade>();
        let grant = request.extensions().get::<Grant>().cloned();
        let (mut head, body) = request.into_parts();
        let upgrade = head.headers.get(UPGRADE).cloned();
        strip(&mut head.headers);
        head.headers.insert(HOST, HeaderValue::from_static("localhost"));
        match upgrade {
            Some(protocol) => {
                head.headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
                head.headers.insert(UPGRADE, protocol);
            }
            None => {
                head.headers.insert(CONNECTION, HeaderValue::from_static("close"));
            }
        }
        // The node is asked for a path, not for a host.
        if let Some(path) = head.uri.path_and_query() {
            head.uri = path.as_str().parse().unwrap_or_default();
        }
        let mut response = self.send(node, scope, Request::from_parts(head, body)).await?;
        let switches = response.status() == StatusCode::SWITCHING_PROTOCOLS;
        if switches && let Some(client) = client {
            let server = hyper::upgrade::on(&mut response);
            tokio::spawn(join_while_granted(grant, client, server));
            return Ok(response.map(|_| Body::empty()));
        }
        strip(response.headers_mut());
        Ok(response.map(Body::new))
    }

    /// One request with a JSON body, and its whole answer.
    pub(super) async fn ask(
        &self,
        node: &str,
        scope: &Scope,
        (method, path): (Method, &str),
        body: Option<&Value>,
    ) -> Result<Whole, Error> {
        self.ask_with(node, scope, (method, path), (body, HeaderMap::new())).await
    }

    pub(super) async fn ask_with(
        &self,
        node: &str,
        scope: &Scope,
        (method, path): (Method, &str),
        (body, headers): (Option<&Value>, HeaderMap),
    ) -> Result<Whole, Error> {
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = path.parse().map_err(|_| bad_path(path))?;
        *request.headers_mut() = headers;
        let (head, body) = self.forward(node, scope, request).await?.into_parts();
        let bytes = to_bytes(body, MOST_BYTES).await.map_err(|_| broken(node))?;
        let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        Ok(Whole { status: head.status, headers: head.headers, body })
    }

    async fn send(
        &self,
        node: &str,
        scope: &Scope,
        request: Request<Body>,
    ) -> Result<Response<hyper::body::Incoming>, Error> {
        check_connected(&self.own.client)?;
        let key = Uuid::new_v4().simple().to_string();
        let subject = subject::stream(node, scope, &key).ok_or_else(only_here)?;
        let opened = self.own.streams.open(subject, &key);
        let Connection { socket, mut ended } = opened.map_err(|error| {
            Error::new(ErrorCode::Failed, format!("cannot connect to the node {node}: {error}"))
        })?;
        let shaken = http1::handshake(TokioIo::new(socket)).await;
        let (mut sender, connection) = shaken.map_err(|_| broken(node))?;
        // Ends with the stream; who reads the answer gets its errors.
        tokio::spawn(async move { _ = connection.with_upgrades().await });
        match sender.send_request(request).await {
            Ok(response) => Ok(response),
            Err(_) => Err(why(&mut ended, node).await),
        }
    }
}

/// A stream has ended without an answer.
async fn why(ended: &mut Ended, node: &str) -> Error {
    // It ends with its socket.
    let known = timeout(Duration::from_secs(1), ended.wait_for(Option::is_some)).await;
    let why = known.ok().and_then(|known| known.ok().and_then(|why| *why));
    match why {
        Some(Why::Nobody | Why::Silent) => silent(node),
        Some(Why::Closed | Why::Left | Why::Lost | Why::Flooded) | None => broken(node),
    }
}

/// The node does not answer.
pub(super) fn silent(node: &str) -> Error {
    Error::new(ErrorCode::NodeSilent, format!("the node {node} does not answer"))
        .hint("its processes may run: their state is unknown until it answers again")
}

fn broken(node: &str) -> Error {
    let message = format!("the connection to the node {node} broke before its answer was here");
    Error::new(ErrorCode::NodeSilent, message)
        .hint("it may have carried out the request: look before you repeat it")
}

fn only_here() -> Error {
    let message = "a token of a page works at the server that gave it, not in a fleet";
    Error::new(ErrorCode::PageToken, message)
}

fn bad_path(path: &str) -> Error {
    Error::new(ErrorCode::InvalidRequest, format!("invalid path: {path}"))
}

fn strip(headers: &mut HeaderMap) {
    for name in &NOT_PASSED_ON {
        headers.remove(name);
    }
    headers.remove(KEEP_ALIVE);
}

/// The token of the client counts here alone: the node knows only its scope.
async fn join_while_granted(
    grant: Option<Grant>,
    client: hyper::upgrade::OnUpgrade,
    server: hyper::upgrade::OnUpgrade,
) {
    let over = async {
        match grant {
            Some(grant) => grant.until_over().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = join(client, server) => {}
        () = over => {}
    }
}

/// Bytes both ways, until both sides have ended.
async fn join(client: hyper::upgrade::OnUpgrade, server: hyper::upgrade::OnUpgrade) {
    if let (Ok(client), Ok(server)) = tokio::join!(client, server) {
        let (mut client, mut server) = (TokioIo::new(client), TokioIo::new(server));
        // A side that breaks ends the other.
        _ = copy_bidirectional(&mut client, &mut server).await;
    }
}
