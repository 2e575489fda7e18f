//! A server for one test, and a client that returns whole answers.

use std::future::pending;
use std::sync::Arc;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{HeaderMap, Request, Response};
use hyper_util::rt::TokioIo;
use lastbyte_engine::{Engine, Settings};
use lastbyte_server::listen::{self, Access, Hosts, Listener, Traffic};
use lastbyte_server::{App, Limits, Sandboxing, router};
use lastbyte_testkit::{Anchor, script};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use crate::documented;

/// Ends with its test: the owners kill their processes when the runtime is dropped.
pub(crate) struct Server {
    pub(crate) address: std::net::SocketAddr,
    pub(crate) engine: Engine,
    pub(crate) traffic: Arc<Traffic>,
    pub(crate) state: TempDir,
}

/// One connection.
pub(crate) struct Client {
    sender: SendRequest<Full<Bytes>>,
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::with(Limits::default()).await
    }

    pub(crate) async fn with(limits: Limits) -> Self {
        Self::made(limits, |_| {}).await
    }

    /// With other settings of the engine.
    pub(crate) async fn tuned(tune: impl FnOnce(&mut Settings)) -> Self {
        Self::made(Limits::default(), tune).await
    }

    /// With other settings for sandboxes.
    pub(crate) async fn sandboxed(sandboxing: Sandboxing) -> Self {
        Self::whole(Limits::default(), |_| {}, sandboxing).await
    }

    /// With other limits and settings of the engine.
    pub(crate) async fn made(limits: Limits, tune: impl FnOnce(&mut Settings)) -> Self {
        Self::whole(limits, tune, Sandboxing::default()).await
    }

    async fn whole(
        limits: Limits,
        tune: impl FnOnce(&mut Settings),
        sandboxing: Sandboxing,
    ) -> Self {
        let state = tempfile::tempdir().unwrap();
        let mut settings = Settings::new(state.path());
        tune(&mut settings);
        let engine = Engine::new(settings).unwrap();
        let pages = Arc::new(listen::Pages::in_memory());
        let app = App::new(engine.clone(), limits).sandboxed(sandboxing);
        let app = app.with_pages(Arc::clone(&pages));
        let listener = Listener::tcp("127.0.0.1:0".parse().unwrap(), Access::Open).unwrap();
        let address = listener.to_string().strip_prefix("http://").unwrap().parse().unwrap();
        let traffic = Arc::clone(&app.traffic);
        let server = listen::Server::new(vec![listener], Hosts::default(), limits)
            .counted_in(Arc::clone(&traffic))
            .with_pages(pages);
        tokio::spawn(server.run(router(app), pending(), pending()));
        Self { address, engine, traffic, state }
    }

    pub(crate) async fn connect(&self) -> Client {
        let stream = TcpStream::connect(self.address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Client::over(stream).await
    }

    /// A connection that is reset when it is dropped, which the server notices at once. After an
    /// orderly close the kernel answers its probes for a minute, as for a half-closed client.
    pub(crate) async fn connect_until_reset(&self) -> Client {
        let stream = TcpStream::connect(self.address).await.unwrap();
        stream.set_zero_linger().unwrap();
        Client::over(stream).await
    }

    /// Starts a `testchild` with this script and these further members; returns the whole answer.
    pub(crate) async fn start_child(&self, actions: &str, more: Value) -> Value {
        let mut request = json!({ "command": argv(actions) });
        let object = request.as_object_mut().unwrap();
        object.extend(more.as_object().unwrap().clone());
        let answer = self.connect().await.post("/v1/processes", &request).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()
    }

    /// Starts a child that obeys the anchor, and waits until it is connected; also returns its
    /// path.
    pub(crate) async fn told(&self, more: Value) -> (Arc<Anchor>, String) {
        let anchor = Arc::new(Anchor::listen());
        let mut request = json!({ "env": env(&anchor) });
        request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let path = self.path_of("hold", request).await;
        held(&anchor, 1).await;
        (anchor, path)
    }

    /// As [`Server::start_child`]; returns the path of the process.
    pub(crate) async fn path_of(&self, actions: &str, more: Value) -> String {
        path(&self.start_child(actions, more).await)
    }
}

/// The variable that connects a child to the anchor, for a request.
pub(crate) fn env(anchor: &Anchor) -> Value {
    let (name, value) = anchor.env();
    json!({ name: value.to_str().unwrap() })
}

/// Waits until `count` processes are connected to the anchor; returns their pids.
pub(crate) async fn held(anchor: &Arc<Anchor>, count: usize) -> Vec<u32> {
    let anchor = Arc::clone(anchor);
    tokio::task::spawn_blocking(move || anchor.wait_for(count)).await.unwrap()
}

/// The path of the process that a start answered with.
pub(crate) fn path(started: &Value) -> String {
    format!("/v1/processes/{}", started["process"]["id"].as_str().unwrap())
}

/// A `testchild` and its script as a command.
pub(crate) fn argv(actions: &str) -> Vec<String> {
    script(actions).into_iter().map(|word| word.into_string().unwrap()).collect()
}

impl Client {
    pub(crate) async fn over(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Self {
        let (sender, connection) = handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        Self { sender }
    }

    pub(crate) async fn get(&mut self, path: &str) -> Answer {
        self.send("GET", path, Bytes::new()).await
    }

    pub(crate) async fn post(&mut self, path: &str, body: &Value) -> Answer {
        self.send("POST", path, body.to_string().into()).await
    }

    pub(crate) async fn send(&mut self, method: &str, path: &str, body: Bytes) -> Answer {
        Answer::whole(self.begin(method, path, body).await).await
    }

    /// Sends a request and waits for the head of its answer.
    pub(crate) async fn begin(
        &mut self,
        method: &str,
        path: &str,
        body: Bytes,
    ) -> Response<Incoming> {
        self.begin_with(method, path, &[], body).await
    }

    /// As [`Client::begin`], with more headers.
    pub(crate) async fn begin_with(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Response<Incoming> {
        let request = Request::builder().method(method).uri(path);
        let has_host = headers.iter().any(|(name, _)| *name == "host");
        let request = if has_host { request } else { request.header("host", "localhost") };
        let request =
            headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        self.sender.ready().await.unwrap();
        let answer = self.sender.send_request(request.body(Full::new(body)).unwrap());
        let answer = answer.await.unwrap();
        documented::check(method, path, &answer);
        answer
    }
}

impl Answer {
    pub(crate) async fn whole(answer: Response<Incoming>) -> Self {
        let (head, body) = answer.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Self { status: head.status.as_u16(), headers: head.headers, body }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    pub(crate) fn head(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(crate) fn number(&self, name: &str) -> u64 {
        self.head(name).unwrap().parse().unwrap()
    }

    /// The code of an error.
    pub(crate) fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap_or_default().to_owned()
    }
}
