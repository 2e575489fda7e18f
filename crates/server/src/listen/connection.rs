//! One connection from its first byte to its last.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, Request, Response, header};
use futures_util::StreamExt;
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use lastbyte_wire::{Error, ErrorCode};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tower_service::Service;

use super::auth::{Access, unauthorized};
use super::client_of::ClientOf;
use super::gate::{self, Admitted};
use super::host::Hosts;
use super::pages::Pages;
use super::peer::Peer;
use super::refusal::refusal;
use super::request_state::RequestBody;
use super::scope::Grant;
use super::socket::Socket;
use super::stage::{Stage, Stages, until};
use super::traffic::{Slot, Traffic};
use crate::Limits;

/// What all connections of a server share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) router: Router,
    pub(super) hosts: Hosts,
    pub(super) limits: Limits,
    pub(super) traffic: Arc<Traffic>,
    pub(super) pages: Arc<Pages>,
    /// Memory for large answers that clients have not read yet, in KiB.
    answers: Arc<Semaphore>,
    /// For rejected connections that are told why.
    pub(super) rejecting: Arc<Semaphore>,
}

/// What is known of the client, besides the head of its request.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    pub(super) peer: Peer,
    pub(super) access: Access,
    pub(super) slot: Arc<Slot>,
    /// The processes that it is connected to while this connection is open.
    pub(super) client_of: ClientOf,
}

/// How many rejected connections are told why at one time; more are closed without an answer.
const MAX_REJECTING: usize = 64;
const KIB: u64 = 1024;
/// Answers up to this size are not counted: there are not more of them than connections.
const SMALL_ANSWER: u64 = 64 * KIB;

impl Shared {
    pub(super) fn new(
        router: Router,
        hosts: Hosts,
        limits: Limits,
        (traffic, pages): (Arc<Traffic>, Arc<Pages>),
    ) -> Self {
        let answers = Arc::new(Semaphore::new(limits.answers_bytes / KIB as usize));
        let rejecting = Arc::new(Semaphore::new(MAX_REJECTING));
        Self { router, hosts, limits, traffic, pages, answers, rejecting }
    }

    /// Reserves memory for a large answer until its client has read it, or replaces it by a refusal.
    fn reserve_memory(
        &self,
        response: Response<Body>,
    ) -> (Response<Body>, Option<OwnedSemaphorePermit>) {
        let bytes = response.body().size_hint().exact().unwrap_or(0);
        if bytes <= SMALL_ANSWER {
            return (response, None);
        }
        let room = u32::try_from(bytes / KIB).unwrap_or(u32::MAX);
        match Arc::clone(&self.answers).try_acquire_many_owned(room) {
            Ok(permit) => (response, Some(permit)),
            Err(_) => (refusal(self.too_many_answers(bytes)), None),
        }
    }

    fn too_many_answers(&self, bytes: u64) -> Error {
        let most = self.limits.answers_bytes;
        let message = format!(
            "answer limit reached: no memory for {bytes} bytes, since unread answers may take {most} \
             bytes in all"
        );
        Error::new(ErrorCode::TooManyAnswers, message).hint(
            "the request was carried out; read the output again in a moment, or read less at once",
        )
    }
}

/// Answers what comes until the client goes, a bound is passed or the server says so.
pub(super) async fn serve(socket: Socket, caller: Caller, shared: Arc<Shared>, mut stages: Stages) {
    let request_state = socket.request_state.clone();
    let http = http(&shared.limits);
    let (peer, traffic) = (caller.peer, Arc::clone(&shared.traffic));
    let service = service_fn(move |request: Request<Incoming>| {
        let (shared, caller) = (Arc::clone(&shared), caller.clone());
        let request_state = request_state.clone();
        let request = request.map(|body| request_state.begin(body));
        async move {
            let response = answer(request, &shared, caller).await;
            let (response, room) = shared.reserve_memory(response);
            if let Some(code) = response.extensions().get::<ErrorCode>() {
                shared.traffic.count_refusal(*code);
            }
            Ok::<_, Infallible>(request_state.answer(response, room))
        }
    });
    let mut connection = pin!(http.serve_connection(TokioIo::new(socket), service).with_upgrades());
    tokio::select! {
        ended = connection.as_mut() => return log_end(ended, peer, &traffic),
        () = until(&mut stages, Stage::Draining) => connection.as_mut().graceful_shutdown(),
    }
    tokio::select! {
        ended = connection => log_end(ended, peer, &traffic),
        () = until(&mut stages, Stage::Cut) => tracing::debug!(%peer, "connection cut at shutdown"),
    }
}

/// Answers one request with an error and closes the connection.
pub(super) async fn reject(socket: Socket, peer: Peer, error: Error, shared: Arc<Shared>) {
    let (request_state, limits) = (socket.request_state.clone(), shared.limits);
    let traffic = Arc::clone(&shared.traffic);
    let service = service_fn(move |request: Request<Incoming>| {
        drop(request_state.begin(request.into_body()));
        shared.traffic.count_refusal(error.code);
        let mut response = refusal(error.clone());
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        let response = request_state.answer(response, None);
        async move { Ok::<_, Infallible>(response) }
    });
    let connection =
        http(&limits).keep_alive(false).serve_connection(TokioIo::new(socket), service);
    // Once for its request to arrive, once for it to read the answer.
    match timeout(2 * limits.lingering_close, connection).await {
        Ok(ended) => log_end(ended, peer, &traffic),
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

async fn answer(request: Request<RequestBody>, shared: &Shared, caller: Caller) -> Response<Body> {
    let began = Instant::now();
    let (mut head, body) = request.into_parts();
    let (method, uri, peer) = (head.method.clone(), head.uri.clone(), caller.peer);
    let admitted = gate::check(&head, &caller.peer, &shared.hosts, &caller.access, &shared.pages);
    let response = match admitted {
        Ok(admitted) => {
            head.extensions.insert(caller.peer);
            head.extensions.insert(caller.client_of.clone());
            let request = |head| Request::from_parts(head, Body::new(body));
            match admitted {
                Admitted::Proved(grant) => {
                    caller.slot.prove();
                    head.extensions.insert(grant.clone());
                    while_granted(shared.router.clone().call(request(head)), grant).await
                }
                Admitted::Public => {
                    let Ok(response) = shared.router.clone().call(request(head)).await;
                    response
                }
            }
        }
        Err(error) => refusal(error),
    };
    // Not the query, which may have text of the client's in it.
    tracing::info!(
        target: "access",
        %method,
        path = uri.path(),
        status = response.status().as_u16(),
        us = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX),
        %peer,
        "request"
    );
    response
}

/// The answer, which ends early if the token is revoked or expires meanwhile.
async fn while_granted(
    answer: impl Future<Output = Result<Response<Body>, Infallible>>,
    grant: Grant,
) -> Response<Body> {
    if grant.life.is_none() {
        let Ok(response) = answer.await;
        return response;
    }
    tokio::select! {
        Ok(response) = answer => {
            // One that is whole is sent whole.
            if response.body().size_hint().exact().is_some() {
                return response;
            }
            let over = Box::pin(grant.until_over());
            response.map(|body| Body::from_stream(body.into_data_stream().take_until(over)))
        }
        () = grant.clone().until_over() => refusal(unauthorized("the token is no longer valid")),
    }
}

/// A connection that ended badly is only worth a debug line.
fn log_end(ended: hyper::Result<()>, peer: Peer, traffic: &Traffic) {
    let Err(error) = ended else { return };
    if let Some(code) = refused_by_hyper(&error) {
        traffic.count_refusal(code);
    }
    let why = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
    tracing::debug!(%peer, %error, why, "connection ended");
}

/// What hyper answered before there was a request: an invalid head (400) or one past the limits
/// (431). hyper writes that answer itself, as a status without a body; the error that ends the
/// connection tells that it did.
fn refused_by_hyper(error: &hyper::Error) -> Option<ErrorCode> {
    if error.is_parse_too_large() {
        Some(ErrorCode::HeadTooLarge)
    } else {
        // HTTP/2 is not answered at all.
        let answered = error.is_parse() && !error.is_parse_version_h2();
        answered.then_some(ErrorCode::InvalidRequest)
    }
}

#[cfg(test)]
mod tests {
    use axum::extract::Request;
    use axum::routing::{get, post};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::UnixStream;
    use tokio::sync::watch;
    use tokio::task::yield_now;

    use super::super::body;
    use super::super::socket::Stream;
    use super::super::traffic::Kind;
    use super::*;

    async fn length(request: Request) -> String {
        let body = body::collect(request.into_body(), &Limits::default()).await;
        body.map_or_else(|error| error.message, |bytes| bytes.len().to_string())
    }

    /// Ignores its body, and lets the connection look for the end of the client many times.
    async fn slow() -> &'static str {
        for _ in 0..100 {
            yield_now().await;
        }
        "slow"
    }

    /// The last line of the answer to a client that had sent all this and ended its side before
    /// the server looked.
    async fn answer_to(request: &str) -> String {
        let (mut client, accepted) = UnixStream::pair().unwrap();
        client.write_all(request.as_bytes()).await.unwrap();
        client.shutdown().await.unwrap();
        let limits = Limits::default();
        let traffic = Arc::new(Traffic::new(&limits));
        let (slot, _evicted) = traffic.take(Kind::Tcp).unwrap();
        let socket = Socket::new(Stream::Unix(accepted), &limits, Some(Arc::clone(&slot)));
        let peer = Peer::Tcp(([127, 0, 0, 1], 1).into());
        let client_of = ClientOf::default();
        let caller = Caller { peer, access: Access::Open, slot, client_of };
        let router = Router::new().route("/length", post(length)).route("/slow", get(slow));
        let shared = Arc::new(Shared::new(
            router,
            Hosts::default(),
            limits,
            (traffic, Arc::new(Pages::in_memory())),
        ));
        let (_stage, stages) = watch::channel(Stage::Open);
        let mut answer = String::new();
        let read = client.read_to_string(&mut answer);
        let ((), read) = tokio::join!(serve(socket, caller, shared, stages), read);
        read.unwrap();
        answer.lines().last().unwrap_or_default().to_owned()
    }

    #[tokio::test]
    async fn a_client_that_half_closes_after_its_body_is_answered() {
        let head = "POST /length HTTP/1.1\r\nHost: localhost\r\n";
        let sized = format!("{head}Content-Length: 5\r\n\r\n12345");
        assert_eq!(answer_to(&sized).await, "5");
        let chunked = format!("{head}Transfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n0\r\n\r\n");
        assert_eq!(answer_to(&chunked).await, "5");
    }

    #[tokio::test]
    async fn a_client_that_half_closes_after_a_body_that_nobody_reads_is_answered() {
        let head = "GET /slow HTTP/1.1\r\nHost: localhost\r\n";
        assert_eq!(answer_to(&format!("{head}\r\n")).await, "slow");
        assert_eq!(answer_to(&format!("{head}Content-Length: 5\r\n\r\n12345")).await, "slow");
    }
}
