//! An engine with the exec-server API, and an anchor for the helpers that are started through it.

use std::net::SocketAddr;

use base64_simd::STANDARD;
use lastbyte_engine::{Engine, Settings};
use lastbyte_server::Limits;
use lastbyte_server::doors::exec_server::{self, Door, SecretPath};
use lastbyte_server::listen::{Access, Hosts, Listener, Server};
use lastbyte_testkit::Anchor;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::codex::client::Client;
use crate::codex::fixture::child;

/// Ends its helpers and removes its files when dropped.
pub struct Fixture {
    pub door: Door,
    pub anchor: Anchor,
    pub folder: tempfile::TempDir,
}

impl Fixture {
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    pub fn with(change: impl FnOnce(&mut exec_server::Settings)) -> Self {
        let (folder, anchor) = (tempfile::tempdir().unwrap(), Anchor::listen());
        let engine = Engine::new(Settings::new(folder.path().join("state"))).unwrap();
        let mut settings = exec_server::Settings::new(folder.path());
        change(&mut settings);
        Self { door: Door::new(engine, settings), anchor, folder }
    }

    /// A client before the handshake.
    pub fn connect(&self) -> Client {
        let door = self.door.clone();
        Client::over_pipes(
            |from, to| async move { exec_server::serve_lines(&door, from, to).await },
        )
    }

    /// A client after the handshake.
    pub async fn client(&self) -> Client {
        let mut client = self.connect();
        shake_hands(&mut client, Value::Null).await;
        client
    }

    /// Listens on a TCP port, with clients at this path.
    pub fn listen(&self, path: SecretPath) -> SocketAddr {
        let listener = Listener::tcp("127.0.0.1:0".parse().unwrap(), Access::Open).unwrap();
        let address = listener.to_string().strip_prefix("http://").unwrap().parse().unwrap();
        let server = Server::new(vec![listener], Hosts::default(), Limits::default());
        let door = self.door.clone();
        tokio::spawn(async move {
            let router = exec_server::router(door.clone(), path);
            server.run(router, door.closed(), std::future::ready(())).await;
        });
        address
    }

    /// Parameters that start a `testchild` with these actions.
    pub fn start(&self, id: &str, actions: &str, more: Value) -> Value {
        let (name, value) = self.anchor.env();
        let cwd = format!("file://{}", self.folder.path().display());
        let mut params = json!({
            "processId": id,
            "argv": child(actions),
            "cwd": cwd,
            "env": {name: value.to_str().unwrap()},
            "tty": false,
        });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        params
    }

    pub async fn started(&self, client: &mut Client, id: &str, actions: &str) {
        let answer = client.call("process/start", self.start(id, actions, json!({}))).await;
        assert_eq!(answer["result"]["processId"], id, "{answer}");
    }
}

/// Returns the session's id.
pub async fn shake_hands(client: &mut Client, resume: Value) -> String {
    let params = json!({"clientName": "test", "resumeSessionId": resume});
    let answer = client.call("initialize", params).await;
    client.send(&json!({"method": "initialized"}));
    answer["result"]["sessionId"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

pub async fn over_websocket(address: SocketAddr, path: &str) -> Client {
    Client::over_websocket_at(path, TcpStream::connect(address).await.unwrap()).await
}

/// The events of a process in the order they came: kind or stream, number, and bytes.
pub fn events(got: &[Value], id: &str) -> Vec<(String, u64, Vec<u8>)> {
    let own = got.iter().filter(|message| message["params"]["processId"] == id);
    let event = |message: &Value| {
        let (method, params) = (message["method"].as_str().unwrap(), &message["params"]);
        let kind = params["stream"].as_str().unwrap_or(method.strip_prefix("process/").unwrap());
        let bytes = params["chunk"].as_str().unwrap_or_default();
        let bytes = STANDARD.decode_to_vec(bytes).unwrap();
        (kind.to_owned(), params["seq"].as_u64().unwrap(), bytes)
    };
    own.map(event).collect()
}

/// All bytes of a stream.
pub fn bytes(got: &[Value], id: &str, stream: &str) -> Vec<u8> {
    events(got, id)
        .into_iter()
        .filter(|event| event.0 == stream)
        .flat_map(|event| event.2)
        .collect()
}

/// Its number.
pub async fn until_event(client: &mut Client, id: &str, kind: &str) -> u64 {
    let method = format!("process/{kind}");
    let mut seen = 0;
    let find = |got: &[Value]| {
        // Each message is looked at once: there may be thousands.
        let is_it =
            |message: &&Value| message["method"] == method && message["params"]["processId"] == id;
        let found = got[seen..].iter().find(is_it);
        seen = got.len();
        found.and_then(|event| event["params"]["seq"].as_u64())
    };
    client.until(&format!("{kind} of {id}"), find).await
}

/// The numbers are 1, 2, 3... in the order they came, and `closed` is the last.
#[track_caller]
pub fn check_numbers(got: &[Value], id: &str) {
    let events = events(got, id);
    let numbers: Vec<u64> = events.iter().map(|event| event.1).collect();
    assert_eq!(numbers, (1..=events.len() as u64).collect::<Vec<_>>(), "{id}");
    assert_eq!(events.last().map(|event| event.0.as_str()), Some("closed"), "{id}");
}
