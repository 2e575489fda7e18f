//! A server with pages, and clients of it.

use std::future::pending;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use lastbyte_engine::{Engine, Settings};
use lastbyte_server::listen::{
    self, AcceptedTokens, Access, CreatedTokens, Hosts, Listener, PageTimes, Server, Token,
};
use lastbyte_server::{App, Limits, router};
use lastbyte_testkit::PATIENCE;
use lastbyte_wire::TokenScope;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Instant, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{self, Message};

use crate::harness::{Answer, Client, argv};

pub(super) struct Pages {
    pub(super) address: SocketAddr,
    pub(super) created: Arc<CreatedTokens>,
    /// Requests without a token come over this, if there is one.
    pub(super) socket: Option<PathBuf>,
    pub(super) state: TempDir,
}

impl Pages {
    pub(super) async fn start() -> Self {
        Self::with(PageTimes::default()).await
    }

    pub(super) async fn with(times: PageTimes) -> Self {
        let state = tempfile::tempdir().unwrap();
        let created = Arc::new(CreatedTokens::open(state.path()).unwrap());
        let token = Token::read_or_create(state.path()).unwrap();
        let access = AcceptedTokens::new(token).and(Arc::clone(&created));
        let access = Access::Token(Arc::new(access));
        let listener = Listener::tcp("127.0.0.1:0".parse().unwrap(), access).unwrap();
        let address = listener.address().unwrap();
        serve(&state, &created, listener, times);
        Self { address, created, socket: None, state }
    }

    /// On a unix socket alone.
    pub(super) async fn without_port(times: PageTimes) -> Self {
        let state = tempfile::tempdir().unwrap();
        let created = Arc::new(CreatedTokens::open(state.path()).unwrap());
        let socket = state.path().join("socket");
        let listener = Listener::unix(&socket).unwrap();
        serve(&state, &created, listener, times);
        let address = ([127, 0, 0, 1], 0).into();
        Self { address, created, socket: Some(socket), state }
    }

    /// The server's own token, as a header field.
    pub(super) fn own(&self) -> String {
        let token = std::fs::read_to_string(Token::file_in(self.state.path())).unwrap();
        format!("Bearer {}", token.trim())
    }

    /// A new token, as a header field.
    pub(super) fn created(&self, scope: TokenScope) -> String {
        format!("Bearer {}", self.created.create(scope, None, None).unwrap().token)
    }

    /// With this token; an empty one is none.
    pub(super) async fn send(&self, token: &str, method: &str, path: &str, body: Value) -> Answer {
        let token = [("authorization", token)];
        let fields = if token[0].1.is_empty() { &[][..] } else { &token[..] };
        self.send_with(method, path, body, fields).await
    }

    pub(super) async fn send_with(
        &self,
        method: &str,
        path: &str,
        body: Value,
        fields: &[(&str, &str)],
    ) -> Answer {
        let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
        let mut client = match &self.socket {
            Some(socket) if fields.is_empty() => {
                Client::over(UnixStream::connect(socket).await.unwrap()).await
            }
            Some(_) | None => {
                let stream = TcpStream::connect(self.address).await.unwrap();
                stream.set_nodelay(true).unwrap();
                Client::over(stream).await
            }
        };
        Answer::whole(client.begin_with(method, path, fields, body).await).await
    }

    pub(super) async fn create_link(&self, token: &str, request: Value) -> String {
        let made = self.send(token, "POST", "/v1/links", request).await;
        assert_eq!(made.status, 201, "{made:?}");
        made.json()["url"].as_str().unwrap().to_owned()
    }

    /// The secret of a new link.
    pub(super) async fn link(&self, token: &str, request: Value) -> String {
        self.create_link(token, request).await.split_once("#link=").unwrap().1.to_owned()
    }

    pub(super) async fn trade(&self, link: &str) -> Answer {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let body = json!({ "link": link }).to_string().into();
        let mut client = Client::over(stream).await;
        Answer::whole(client.begin("POST", "/v1/links/trade", body).await).await
    }

    /// The token of a new page, as a header field.
    pub(super) async fn page(&self, token: &str, request: Value) -> String {
        let traded = self.trade(&self.link(token, request).await).await;
        assert_eq!(traded.status, 200, "{traded:?}");
        format!("Bearer {}", traded.json()["token"].as_str().unwrap())
    }

    pub(super) async fn ticket(&self, token: &str) -> String {
        let made = self.send(token, "POST", "/v1/tickets", Value::Null).await;
        assert_eq!(made.status, 201, "{made:?}");
        made.json()["ticket"].as_str().unwrap().to_owned()
    }

    /// Starts a command with these members; returns its id.
    pub(super) async fn run(&self, request: Value) -> String {
        let token = if self.socket.is_some() { String::new() } else { self.own() };
        let started = self.send(&token, "POST", "/v1/processes", request).await;
        assert_eq!(started.status, 201, "{started:?}");
        started.json()["process"]["id"].as_str().unwrap().to_owned()
    }

    /// A process that copies its input to its output.
    pub(super) async fn cat(&self, session: &str) -> String {
        self.run(json!({ "command": argv("cat"), "stdin": "open", "session": session })).await
    }

    /// The status of a refusal, if there is one.
    pub(super) async fn attach(&self, process: &str, ticket: &str) -> Result<Attached, u16> {
        Attached::open(self, process, &format!("ticket={ticket}"), ("localhost", None)).await
    }

    /// All output so far.
    pub(super) async fn output(&self, process: &str) -> String {
        let path = format!("/v1/processes/{process}/output?view=raw");
        let output = self.send(&self.own(), "GET", &path, Value::Null).await;
        String::from_utf8_lossy(&output.body).into_owned()
    }

    /// Waits until this holds, looking no more often than this.
    pub(super) async fn until(&self, holds: impl AsyncFn() -> bool, every: Duration) {
        let look = async {
            while !holds().await {
                tokio::time::sleep_until(Instant::now() + every * 2).await;
            }
        };
        timeout(PATIENCE, look).await.expect("it does not come to pass");
    }
}

fn serve(state: &TempDir, created: &Arc<CreatedTokens>, listener: Listener, times: PageTimes) {
    let engine = Engine::new(Settings::new(state.path())).unwrap();
    let limits = Limits::default();
    let pages = listen::Pages::open(state.path(), false, times, Arc::clone(created));
    let pages = Arc::new(pages.unwrap());
    let app = App::new(engine, limits).with_tokens(Arc::clone(created));
    let app = app.with_pages(Arc::clone(&pages));
    let server = Server::new(vec![listener], Hosts::default(), limits).with_pages(pages);
    tokio::spawn(server.run(router(app), pending(), pending()));
}

/// A WebSocket to a process.
#[derive(Debug)]
pub(super) struct Attached(pub(super) WebSocketStream<TcpStream>);

impl Attached {
    pub(super) async fn open(
        server: &Pages,
        process: &str,
        query: &str,
        (host, origin): (&str, Option<&str>),
    ) -> Result<Self, u16> {
        let stream = TcpStream::connect(server.address).await.unwrap();
        let url = format!("ws://{host}/v1/processes/{process}/attach?{query}");
        let mut request = url.into_client_request().unwrap();
        if let Some(origin) = origin {
            request.headers_mut().insert("origin", origin.parse().unwrap());
        }
        match tokio_tungstenite::client_async(request, stream).await {
            Ok((socket, _)) => Ok(Self(socket)),
            Err(tungstenite::Error::Http(answer)) => Err(answer.status().as_u16()),
            Err(error) => panic!("{error}"),
        }
    }

    /// The next message that is no output.
    pub(super) async fn words(&mut self) -> Value {
        timeout(PATIENCE, async {
            loop {
                if let Message::Text(text) = self.0.next().await.unwrap().unwrap() {
                    return serde_json::from_str(&text).unwrap();
                }
            }
        })
        .await
        .unwrap()
    }

    /// Output until it has this text; returns all of it.
    pub(super) async fn until_output(&mut self, text: &str) -> String {
        let mut all = Vec::new();
        timeout(PATIENCE, async {
            while !String::from_utf8_lossy(&all).contains(text) {
                if let Message::Binary(bytes) = self.0.next().await.unwrap().unwrap() {
                    all.extend_from_slice(&bytes);
                }
            }
        })
        .await
        .unwrap_or_else(|_| panic!("no {text:?} in {all:?}"));
        String::from_utf8_lossy(&all).into_owned()
    }

    pub(super) async fn say(&mut self, words: Value) {
        self.0.send(Message::text(words.to_string())).await.unwrap();
    }

    pub(super) async fn type_text(&mut self, text: &str) {
        self.0.send(Message::binary(text.as_bytes().to_vec())).await.unwrap();
    }

    /// Waits until the server ends the connection.
    pub(super) async fn until_over(mut self) {
        let over = async { while let Some(Ok(_)) = self.0.next().await {} };
        timeout(PATIENCE, over).await.expect("the connection stays open");
    }
}
