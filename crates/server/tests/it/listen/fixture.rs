//! A server on a unix socket and a TCP port, with routes that do what a test needs.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{Request, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use lastbyte_server::Limits;
use lastbyte_server::listen::{Access, Hosts, Listener, Peer, Server, body, refusal};
use lastbyte_testkit::PATIENCE;
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinHandle;

pub const LARGE: usize = 64 << 20;

/// Stops its server when dropped.
pub struct Fixture {
    pub folder: tempfile::TempDir,
    pub address: SocketAddr,
    /// Each request for `/held` adds one.
    pub entered: Arc<Semaphore>,
    /// Each permit lets one request for `/held` continue.
    pub let_go: Arc<Semaphore>,
    pub runtime: Runtime,
    pub shutdown: Option<oneshot::Sender<()>>,
    pub cut: Option<oneshot::Sender<()>>,
    pub server: Option<JoinHandle<()>>,
}

#[derive(Clone)]
struct Routes {
    limits: Limits,
    entered: Arc<Semaphore>,
    let_go: Arc<Semaphore>,
    large: bytes::Bytes,
}

impl Fixture {
    pub fn new() -> Self {
        Self::with(Limits::default(), Access::Open)
    }

    pub fn with_limits(limits: Limits) -> Self {
        Self::with(limits, Access::Open)
    }

    pub fn with(limits: Limits, access: Access) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let runtime = Runtime::new().unwrap();
        let context = runtime.enter();
        let unix = Listener::unix(&folder.path().join("socket")).unwrap();
        let tcp = Listener::tcp(([127, 0, 0, 1], 0).into(), access).unwrap();
        let address = tcp.to_string().strip_prefix("http://").unwrap().parse().unwrap();
        let (entered, let_go) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let routes = Routes {
            limits,
            entered: Arc::clone(&entered),
            let_go: Arc::clone(&let_go),
            large: vec![b'x'; LARGE].into(),
        };
        let hosts = Hosts::new(["build.example".to_owned()]);
        let (shutdown, shut_down) = oneshot::channel();
        let (cut, is_cut) = oneshot::channel();
        let server = runtime.spawn(Server::new(vec![unix, tcp], hosts, limits).run(
            router(routes),
            async { _ = shut_down.await },
            async { _ = is_cut.await },
        ));
        drop(context);
        let (shutdown, cut) = (Some(shutdown), Some(cut));
        Self { folder, address, entered, let_go, runtime, shutdown, cut, server: Some(server) }
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    pub fn tcp(&self) -> Client<TcpStream> {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Client(BufReader::new(stream))
    }

    pub fn unix(&self) -> Client<UnixStream> {
        let stream = UnixStream::connect(self.socket()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Client(BufReader::new(stream))
    }

    /// Waits until this many requests for `/held` have arrived.
    pub fn wait_until_entered(&self, count: u32) {
        let entered = self.entered.acquire_many(count);
        self.runtime
            .block_on(async { tokio::time::timeout(PATIENCE, entered).await })
            .unwrap()
            .unwrap()
            .forget();
    }

    /// Waits for the end of the server.
    pub fn wait_until_gone(&mut self) {
        let server = self.server.take().unwrap();
        let ended = self.runtime.block_on(async { tokio::time::timeout(PATIENCE, server).await });
        ended.unwrap().unwrap();
    }
}

fn router(routes: Routes) -> Router {
    Router::new()
        .route("/healthz", get(async || "well"))
        .route("/hello", get(async || "hello"))
        .route("/peer", get(async |Extension(peer): Extension<Peer>| peer.to_string()))
        .route("/large", get(async |State(routes): State<Routes>| Body::from(routes.large)))
        .route("/length", post(length))
        .route("/held", get(held))
        .route("/upgrade", get(upgrade))
        .with_state(routes)
}

async fn length(State(routes): State<Routes>, request: Request<Body>) -> Response<Body> {
    match body::collect(request.into_body(), &routes.limits).await {
        Ok(bytes) => Response::new(Body::from(bytes.len().to_string())),
        Err(error) => refusal(error),
    }
}

async fn held(State(routes): State<Routes>) -> &'static str {
    routes.entered.add_permits(1);
    routes.let_go.acquire().await.unwrap().forget();
    "let go"
}

/// Upgrades to a connection that echoes the first byte.
async fn upgrade(request: Request<Body>) -> Response<Body> {
    tokio::spawn(async {
        let line = hyper::upgrade::on(request).await.unwrap();
        let mut line = hyper_util::rt::TokioIo::new(line);
        let mut byte = [0];
        tokio::io::AsyncReadExt::read_exact(&mut line, &mut byte).await.unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut line, &byte).await.unwrap();
    });
    Response::builder()
        .status(101)
        .header("connection", "upgrade")
        .header("upgrade", "echo")
        .body(Body::empty())
        .unwrap()
}

/// A client connection without a library.
pub struct Client<S>(pub BufReader<S>);

#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl<S: Read + Write> Client<S> {
    pub fn send(&mut self, text: &str) {
        self.0.get_mut().write_all(text.as_bytes()).unwrap();
    }

    /// Sends a GET to `localhost` with these additional header fields.
    pub fn get(&mut self, path: &str, fields: &[&str]) -> Answer {
        let fields: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
        self.send(&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n"));
        self.answer()
    }

    pub fn answer(&mut self) -> Answer {
        let head = self.head();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let mut body = vec![0; field(&head, "content-length").map_or(0, |n| n.parse().unwrap())];
        self.0.read_exact(&mut body).unwrap();
        Answer { status, head, body: String::from_utf8(body).unwrap() }
    }

    pub fn head(&mut self) -> String {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(self.0.read_line(&mut head).unwrap(), 0, "closed after {head:?}");
        }
        head
    }

    /// Waits until the server has closed it; returns what it sent.
    pub fn rest(mut self) -> String {
        let mut rest = Vec::new();
        if let Err(error) = self.0.read_to_end(&mut rest) {
            assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
        }
        String::from_utf8_lossy(&rest).into_owned()
    }
}

impl Answer {
    /// Status and code, of an answer that is an error.
    #[track_caller]
    pub fn refusal(&self) -> (u16, String) {
        assert_eq!(field(&self.head, "content-type"), Some("application/json"), "{self:?}");
        let body: Value = serde_json::from_str(&self.body).unwrap();
        (self.status, body["error"]["code"].as_str().unwrap().to_owned())
    }
}

pub fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (field, value) = line.split_once(": ")?;
        field.eq_ignore_ascii_case(name).then_some(value)
    })
}

/// A short time, for tests of time limits.
pub const SOON: Duration = Duration::from_millis(300);
