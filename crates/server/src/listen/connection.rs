//! One connection from its first byte to its last.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, Request, Response, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use lastbyte_wire::{Error, ErrorCode};
use tokio::time::timeout;
use tower_service::Service;

use super::access_log::Entry;
use super::auth::Access;
use super::gate;
use super::host::Hosts;
use super::linger::Unread;
use super::peer::Peer;
use super::phase::{Phase, Phases};
use super::refusal::refusal;
use super::socket::Socket;
use super::traffic::Traffic;
use crate::Limits;

/// What all connections of a server share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) router: Router,
    pub(super) hosts: Hosts,
    pub(super) limits: Limits,
    pub(super) traffic: Arc<Traffic>,
}

/// What a request is judged by besides its own head.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    pub(super) peer: Peer,
    pub(super) access: Access,
}

/// Answers what comes until the client goes, a bound is passed or the server says so.
pub(super) async fn serve(socket: Socket, caller: Caller, shared: Arc<Shared>, mut phases: Phases) {
    let (unread, upgraded) = (socket.unread(), socket.upgraded());
    let http = http(&shared.limits);
    let (peer, traffic) = (caller.peer, Arc::clone(&shared.traffic));
    let service = service_fn(move |request| {
        let (shared, caller, upgraded) = (Arc::clone(&shared), caller.clone(), upgraded.clone());
        let answer = answer(request, shared, caller, unread.clone());
        async move { answer.await.inspect(|response| upgraded.look_at(response)) }
    });
    let mut connection = pin!(http.serve_connection(TokioIo::new(socket), service).with_upgrades());
    tokio::select! {
        ended = connection.as_mut() => return tell(ended, peer, &traffic),
        () = phases.until(Phase::Draining) => connection.as_mut().graceful_shutdown(),
    }
    tokio::select! {
        ended = connection => tell(ended, peer, &traffic),
        () = phases.until(Phase::Cut) => tracing::debug!(%peer, "connection cut at shutdown"),
    }
}

/// Tells a client that there is no room for it, and no more.
pub(super) async fn turn_away(socket: Socket, peer: Peer, error: Error, shared: Arc<Shared>) {
    let (unread, limits) = (socket.unread(), shared.limits);
    let traffic = Arc::clone(&shared.traffic);
    let service = service_fn(move |request: Request<Incoming>| {
        drop(unread.of(request.into_body()));
        shared.traffic.count_refusal(error.code);
        let mut response = refusal(error.clone());
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        async move { Ok::<_, Infallible>(response) }
    });
    let connection =
        http(&limits).keep_alive(false).serve_connection(TokioIo::new(socket), service);
    // Until its request is there, and again until it has heard us.
    match timeout(2 * limits.linger, connection).await {
        Ok(ended) => tell(ended, peer, &traffic),
        Err(_) => tracing::debug!(%peer, "connection turned away unheard"),
    }
}

fn http(limits: &Limits) -> http1::Builder {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(limits.head_time)
        .max_headers(limits.head_fields)
        .max_header_size(limits.head_bytes)
        .max_buf_size(limits.head_bytes);
    http
}

async fn answer(
    request: Request<Incoming>,
    shared: Arc<Shared>,
    caller: Caller,
    unread: Unread,
) -> Result<Response<Body>, Infallible> {
    let entry = Entry::begin(request.method(), request.uri(), caller.peer);
    let (mut head, body) = request.into_parts();
    let body = unread.of(body);
    let admitted = gate::check(&head, &caller.peer, &shared.hosts, &caller.access);
    let response = match admitted {
        Ok(()) => {
            head.extensions.insert(caller.peer);
            let request = Request::from_parts(head, Body::new(body));
            shared.router.clone().call(request).await?
        }
        Err(error) => refusal(error),
    };
    if let Some(code) = response.extensions().get::<ErrorCode>() {
        shared.traffic.count_refusal(*code);
    }
    entry.end(response.status());
    Ok(response)
}

/// A connection that ended badly is its client's affair.
fn tell(ended: hyper::Result<()>, peer: Peer, traffic: &Traffic) {
    let Err(error) = ended else { return };
    if let Some(code) = refused_by_hyper(&error) {
        traffic.count_refusal(code);
    }
    let why = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
    tracing::debug!(%peer, %error, why, "connection ended");
}

/// What hyper has answered before there was a request: a head that is none (400) or is past its
/// bounds (431). It lets nobody write that answer, so it is a status without a body; that it was
/// given is known by the error that ends the connection.
fn refused_by_hyper(error: &hyper::Error) -> Option<ErrorCode> {
    if error.is_parse_too_large() {
        Some(ErrorCode::HeadTooLarge)
    } else {
        // Whoever begins with HTTP/2 is not answered at all.
        let answered = error.is_parse() && !error.is_parse_version_h2();
        answered.then_some(ErrorCode::InvalidRequest)
    }
}
