//! `GET …/attach`: both directions over one WebSocket.

mod reconnect;

use std::sync::Arc;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{self, Message};

use crate::harness::Server;

type Socket = WebSocketStream<TcpStream>;

/// A message: bytes or JSON.
#[derive(Debug, PartialEq)]
enum Came {
    Bytes(Vec<u8>),
    Words(Value),
}

async fn attach(server: &Server, path: &str, query: &str) -> Socket {
    let stream = TcpStream::connect(server.address).await.unwrap();
    let url = format!("ws://localhost{path}/attach{query}");
    tokio_tungstenite::client_async(url, stream).await.unwrap().0
}

async fn next(socket: &mut Socket) -> Option<Came> {
    match socket.next().await?.unwrap() {
        Message::Binary(bytes) => Some(Came::Bytes(bytes.to_vec())),
        Message::Text(text) => Some(Came::Words(serde_json::from_str(&text).unwrap())),
        Message::Close(_) => None,
        other => panic!("{other:?}"),
    }
}

async fn words(socket: &mut Socket) -> Value {
    match next(socket).await {
        Some(Came::Words(words)) => words,
        other => panic!("{other:?}"),
    }
}

/// Receives `count` bytes, in any number of messages.
async fn bytes(socket: &mut Socket, count: usize) -> Vec<u8> {
    let mut all = Vec::new();
    while all.len() < count {
        match next(socket).await {
            Some(Came::Bytes(bytes)) => all.extend(bytes),
            other => panic!("{other:?} after {all:?}"),
        }
    }
    all
}

async fn say(socket: &mut Socket, words: Value) {
    socket.send(Message::text(words.to_string())).await.unwrap();
}

#[tokio::test]
async fn input_and_output_are_passed_on_and_the_ending_comes_last() {
    let server = Server::start().await;
    let path = server.path_of("cat then exit 4", json!({ "stdin": "open" })).await;
    let mut socket = attach(&server, &path, "").await;
    assert_eq!(words(&mut socket).await, json!({ "kind": "attached", "cursor": 0, "accepted": 0 }));
    socket.send(Message::binary(&b"some \xff bytes"[..])).await.unwrap();
    assert_eq!(bytes(&mut socket, 12).await, b"some \xff bytes");
    say(&mut socket, json!({ "kind": "close_stdin" })).await;
    let ending = words(&mut socket).await;
    assert_eq!(
        (&ending["kind"], &ending["ending"]["status"]["code"]),
        (&json!("ending"), &json!(4))
    );
    assert_eq!(next(&mut socket).await, None);
}

#[tokio::test]
async fn a_terminal_is_resized() {
    let server = Server::start().await;
    let more = json!({ "tty": { "rows": 24, "cols": 80 }, "stdin": "open" });
    let path = server.path_of("print-winsize-on-winch", more).await;
    let mut socket = attach(&server, &path, "").await;
    words(&mut socket).await;
    assert_eq!(bytes(&mut socket, 7).await, b"ready\r\n");
    say(&mut socket, json!({ "kind": "resize", "rows": 30, "cols": 100 })).await;
    assert_eq!(bytes(&mut socket, 8).await, b"30 100\r\n");
}

#[tokio::test]
async fn a_refused_message_does_not_end_the_connection() {
    let server = Server::start().await;
    let (anchor, path) = server.told(json!({})).await;
    let mut socket = attach(&server, &path, "").await;
    assert_eq!(words(&mut socket).await, json!({ "kind": "attached", "cursor": 0 }));
    socket.send(Message::binary(&b"x"[..])).await.unwrap();
    assert_eq!(words(&mut socket).await["error"]["code"], "stdin_not_open");
    say(&mut socket, json!({ "kind": "resize", "rows": 1, "cols": 1 })).await;
    assert_eq!(words(&mut socket).await["error"]["code"], "no_terminal");
    say(&mut socket, json!({ "kind": "resize", "rows": 1, "columns": 1 })).await;
    assert_eq!(words(&mut socket).await["error"]["code"], "invalid_request");
    say(&mut socket, json!(["resize", 1, 1])).await;
    assert_eq!(words(&mut socket).await["error"]["code"], "invalid_request");
    anchor.tell("print still");
    assert_eq!(bytes(&mut socket, 5).await, b"still");
}

#[tokio::test]
async fn a_message_that_is_too_long_is_refused_completely() {
    let server = Server::start().await;
    let path = server.path_of("cat", json!({ "stdin": "open" })).await;
    // One fits into the buffers of the connection, the other does not.
    for length in [(1 << 20) + 1, 32 << 20] {
        let mut socket = attach(&server, &path, "").await;
        assert_eq!(words(&mut socket).await["accepted"], 0);
        let (mut sink, mut stream) = socket.split();
        // The server reads only its beginning.
        let sending = tokio::spawn(async move {
            _ = sink.send(Message::binary(vec![b'x'; length])).await;
        });
        let refused = stream.next().await.unwrap().unwrap().into_text().unwrap();
        let refused: Value = serde_json::from_str(&refused).unwrap();
        assert_eq!(refused["error"]["code"], "body_too_large", "{length}: {refused}");
        let Message::Close(Some(frame)) = stream.next().await.unwrap().unwrap() else {
            panic!("no reason to close");
        };
        assert_eq!(u16::from(frame.code), 1009);
        drop(stream);
        sending.abort();
    }
    let mut socket = attach(&server, &path, "").await;
    assert_eq!(words(&mut socket).await["accepted"], 0);
    let most = vec![b'x'; 1 << 20];
    socket.send(Message::binary(most.clone())).await.unwrap();
    assert!(bytes(&mut socket, most.len()).await == most);
}

#[tokio::test]
async fn output_starts_at_the_cursor_and_late_output_comes_on_request() {
    let server = Server::start().await;
    let anchor = Arc::new(lastbyte_testkit::Anchor::listen());
    let more = json!({ "env": crate::harness::env(&anchor), "wait": { "exit": true } });
    let path = server.path_of("print early then leave-silent-holder", more).await;
    crate::harness::held(&anchor, 1).await;
    let mut socket = attach(&server, &path, "?from=-2&late=true").await;
    assert_eq!(words(&mut socket).await["cursor"], 3);
    assert_eq!(bytes(&mut socket, 2).await, b"ly");
    assert_eq!(words(&mut socket).await["kind"], "ending");
    anchor.tell("print late");
    assert_eq!(bytes(&mut socket, 4).await, b"late");
    anchor.tell("exit 0");
    assert_eq!(next(&mut socket).await, None);
}

#[tokio::test]
async fn a_client_that_disconnects_leaves_the_process_alone() {
    let server = Server::start().await;
    let (anchor, path) = server.told(json!({ "stdin": "open" })).await;
    let mut socket = attach(&server, &path, "").await;
    words(&mut socket).await;
    drop(socket);
    anchor.tell("print on");
    let past = json!({ "output_past": 1 });
    let answer = server.connect().await.post(&format!("{path}/wait"), &past).await.json();
    assert_eq!(answer["process"]["phase"], "running");
}

#[tokio::test]
async fn attach_needs_the_same_authorization_as_other_routes() {
    let server = Server::start().await;
    let path = server.path_of("hold", json!({})).await;
    let path = format!("{path}/attach");
    let plain = server.connect().await.get(&path).await;
    assert_eq!((plain.status, plain.code().as_str()), (400, "invalid_request"));
    for (name, value, want) in [("origin", "http://evil", 403), ("host", "evil", 421)] {
        let stream = TcpStream::connect(server.address).await.unwrap();
        let mut request = tungstenite::client::IntoClientRequest::into_client_request(format!(
            "ws://localhost{path}"
        ))
        .unwrap();
        request.headers_mut().insert(name, value.parse().unwrap());
        let refused = tokio_tungstenite::client_async(request, stream).await.unwrap_err();
        assert!(
            matches!(&refused, tungstenite::Error::Http(answer) if answer.status() == want),
            "{name}: {refused:?}"
        );
    }
}
