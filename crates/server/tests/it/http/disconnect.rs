//! `on_disconnect`: a process whose clients are gone is stopped, and which connections count.

use std::sync::Arc;

use lastbyte_engine::{Cause, Ending, Process, Verb};
use lastbyte_testkit::Anchor;
use serde_json::{Value, json};
use tokio_tungstenite::client_async;

use crate::harness::{Answer, Client, Server, argv, env, held, path};

const LEFT: Cause = Cause::Stopped { verb: Verb::Disconnect, escalated: false };

fn stop_after(ms: u64) -> Value {
    json!({ "on_disconnect": "stop", "disconnect_timeout_ms": ms })
}

/// Without a request, which would be a client.
fn find(server: &Server, path: &str) -> Process {
    server.engine.get(path.rsplit('/').next().unwrap().parse().unwrap()).unwrap()
}

async fn ending(server: &Server, path: &str) -> Arc<Ending> {
    find(server, path).ended().await
}

/// One that was started over a connection, with its path.
struct Started {
    process: Process,
    path: String,
    _anchor: Arc<Anchor>,
}

async fn start(server: &Server, client: &mut Client, ms: u64) -> Started {
    let anchor = Arc::new(Anchor::listen());
    let mut request = json!({ "command": argv("hold"), "env": env(&anchor) });
    request.as_object_mut().unwrap().extend(stop_after(ms).as_object().unwrap().clone());
    let path = path(&client.post("/v1/processes", &request).await.json());
    held(&anchor, 1).await;
    Started { process: find(server, &path), path, _anchor: anchor }
}

/// Starts one whose connection is closed at once, and waits until it was stopped for that.
async fn another_is_stopped(server: &Server) {
    let mut client = server.connect().await;
    let Started { process, _anchor, .. } = start(server, &mut client, 100).await;
    drop(client);
    assert_eq!(process.ended().await.cause, LEFT);
}

#[tokio::test]
async fn a_process_is_stopped_after_its_connection_has_closed() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let Started { process, path, _anchor } = start(&server, &mut client, 100).await;
    another_is_stopped(&server).await;
    assert!(process.snapshot().ending().is_none(), "its connection is open");
    drop(client);
    assert_eq!(ending(&server, &path).await.cause, LEFT);
    let shown = server.connect().await.get(&path).await.json();
    assert_eq!(shown["ending"]["cause"]["verb"], "disconnect");
}

#[tokio::test]
async fn every_connection_that_asks_about_it_counts() {
    let server = Server::start().await;
    let get = |path: &str| ("GET", path.to_owned(), json!({}));
    for ask in [
        get as fn(&str) -> (&'static str, String, Value),
        |path| ("POST", format!("{path}/wait"), json!({ "timeout_ms": 0 })),
        |path| {
            let id = path.rsplit('/').next().unwrap();
            (
                "POST",
                "/v1/wait".into(),
                json!({ "select": { "ids": [id] }, "wait": { "timeout_ms": 0 } }),
            )
        },
        |_| {
            (
                "POST",
                "/v1/wait".into(),
                json!({ "select": { "all": true }, "wait": { "timeout_ms": 0 } }),
            )
        },
    ] {
        let mut starter = server.connect().await;
        let Started { process, path, _anchor } = start(&server, &mut starter, 100).await;
        let (method, uri, body) = ask(&path);
        let mut client = server.connect().await;
        let answer = client.send(method, &uri, body.to_string().into()).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        drop(starter);
        another_is_stopped(&server).await;
        another_is_stopped(&server).await;
        assert!(process.snapshot().ending().is_none(), "{uri}");
        drop(client);
        assert_eq!(process.ended().await.cause, LEFT);
    }
}

#[tokio::test]
async fn a_list_is_no_client() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let Started { process, _anchor, .. } = start(&server, &mut client, 100).await;
    let mut lister = server.connect().await;
    assert_eq!(lister.get("/v1/processes").await.status, 200);
    drop(client);
    assert_eq!(process.ended().await.cause, LEFT);
    drop(lister);
}

#[tokio::test]
async fn an_attached_client_counts_until_its_socket_closes() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let Started { process, path, _anchor } = start(&server, &mut client, 100).await;
    let stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
    let url = format!("ws://localhost{path}/attach");
    let (attached, _) = client_async(url, stream).await.unwrap();
    drop(client);
    another_is_stopped(&server).await;
    another_is_stopped(&server).await;
    assert!(process.snapshot().ending().is_none());
    drop(attached);
    assert_eq!(process.ended().await.cause, LEFT);
}

#[tokio::test]
async fn a_tool_of_an_agent_counts_until_its_connection_closes() {
    let server = Server::start().await;
    let anchor = Arc::new(Anchor::listen());
    // The session of calls that name none.
    let mut request = json!({ "command": argv("hold"), "env": env(&anchor), "session": "mcp" });
    request.as_object_mut().unwrap().extend(stop_after(100).as_object().unwrap().clone());
    let mut starter = server.connect().await;
    let path = path(&starter.post("/v1/processes", &request).await.json());
    let process = find(&server, &path);
    let read =
        json!({ "name": "read_output", "arguments": { "process_id": process.id().to_string() } });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": read });
    let fields =
        [("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
    let mut agent = server.connect().await;
    let answer = agent.begin_with("POST", "/mcp", &fields, call.to_string().into()).await;
    let answer = Answer::whole(answer).await.json();
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    drop(starter);
    another_is_stopped(&server).await;
    another_is_stopped(&server).await;
    assert!(process.snapshot().ending().is_none());
    drop(agent);
    let ended = tokio::time::timeout(lastbyte_testkit::PATIENCE, process.ended()).await;
    assert_eq!(ended.expect("it is stopped").cause, LEFT);
}

#[tokio::test]
async fn the_receipt_tells_the_time() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    for (more, want) in [
        (json!({ "on_disconnect": "stop" }), json!(30_000)),
        (json!({ "on_disconnect": "stop", "disconnect_timeout_ms": 5 }), json!(5)),
        (json!({ "disconnect_timeout_ms": 5 }), json!(5)),
        (json!({ "on_disconnect": "keep", "disconnect_timeout_ms": 5 }), json!(null)),
        (json!({}), json!(null)),
    ] {
        let mut request = json!({ "shell": "true" });
        request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let path = path(&client.post("/v1/processes", &request).await.json());
        let receipt = client.get(&format!("{path}/receipt")).await.json();
        assert_eq!(receipt["limits"]["disconnect_timeout_ms"], want, "{more}");
    }
}
