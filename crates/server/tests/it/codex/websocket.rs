//! WebSockets: many clients, each with its own ids and commands.

use std::net::SocketAddr;

use futures_util::{SinkExt, StreamExt};
use lastbyte_server::Limits;
use lastbyte_testkit::is_alive;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

use super::client::Client;
use super::fixture::{Fixture, fault, patiently, result, run};
use super::transport::listen;

async fn connect(address: SocketAddr) -> Client {
    let mut client = Client::over_websocket(TcpStream::connect(address).await.unwrap()).await;
    client.initialize(json!({"experimentalApi": true})).await;
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_belong_to_their_connection() {
    let fixture = Fixture::new();
    let address = listen(&fixture, Limits::default());
    let (mut one, mut other) = (connect(address).await, connect(address).await);
    one.request("command/exec", run("stubborn-tree 3 then hold", json!({"processId": "same"})));
    fixture.anchor.wait_for(4);
    let refused = other.call("command/exec/terminate", json!({"processId": "same"})).await;
    assert_eq!(fault(&refused).1, "no active command/exec for process id \"same\"");
    let begun = other.request("command/exec", run("hold", json!({"processId": "same"})));
    fixture.anchor.wait_for(5);
    one.close();
    let left = fixture.anchor.wait_for_at_most(1);
    assert!(is_alive(left[0]), "what belongs to the other lives");
    other.call("command/exec/terminate", json!({"processId": "same"})).await;
    assert_eq!(result(&other.answer(begun).await).0, 137);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_disappears_leaves_nothing_behind() {
    let fixture = Fixture::new();
    let address = listen(&fixture, Limits::default());
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut socket, _) = tokio_tungstenite::client_async("ws://localhost/", stream).await.unwrap();
    let hello = json!({"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "n", "version": "0"}}});
    let more = json!({"processId": "f", "streamStdoutStderr": true, "disableOutputCap": true});
    let flood = json!({"id": 2, "method": "command/exec", "params": run("stubborn-tree 3 then join then flood", more)});
    for message in [hello, flood] {
        socket.send(Message::text(message.to_string())).await.unwrap();
    }
    fixture.anchor.wait_for(4);
    // Without a close frame, while output is being sent.
    drop(socket);
    fixture.anchor.wait_for_at_most(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn binary_frames_are_ignored_and_pings_are_answered() {
    let fixture = Fixture::new();
    let stream = TcpStream::connect(listen(&fixture, Limits::default())).await.unwrap();
    let (mut socket, _) = tokio_tungstenite::client_async("ws://localhost/", stream).await.unwrap();
    let hello = json!({"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "n", "version": "0"}}});
    socket.send(Message::binary(hello.to_string().into_bytes())).await.unwrap();
    socket.send(Message::Ping("still there?".into())).await.unwrap();
    let pong = patiently("a pong", socket.next()).await.unwrap().unwrap();
    assert_eq!(pong, Message::Pong("still there?".into()));
    socket.send(Message::text(hello.to_string())).await.unwrap();
    let answer = patiently("an answer", socket.next()).await.unwrap().unwrap();
    assert!(answer.to_text().unwrap().starts_with("{\"id\":1,\"result\":"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_utf_8_ends_only_its_own_connection() {
    let fixture = Fixture::new();
    let address = listen(&fixture, Limits::default());
    let mut other = connect(address).await;
    let begun = other.request("command/exec", run("hold", json!({"processId": "o"})));
    fixture.anchor.wait_for(1);
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut socket, _) = tokio_tungstenite::client_async("ws://localhost/", stream).await.unwrap();
    let bytes = &b"{\"id\":1,\"method\":\"\xff\"}"[..];
    let spoiled = Frame::message(bytes, OpCode::Data(Data::Text), true);
    socket.send(Message::Frame(spoiled)).await.unwrap();
    patiently("its end", async { while let Some(Ok(_)) = socket.next().await {} }).await;
    assert_eq!(fixture.anchor.count(), 1, "what belongs to the other lives");
    other.call("command/exec/terminate", json!({"processId": "o"})).await;
    assert_eq!(result(&other.answer(begun).await).0, 137);
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_requests_get_the_health_pages_and_nothing_else() {
    let fixture = Fixture::new();
    let address = listen(&fixture, Limits::default());
    for (request, header, want) in [
        ("GET /readyz", "", "200"),
        ("GET /healthz", "", "200"),
        ("HEAD /readyz", "", "200"),
        ("HEAD /healthz", "", "200"),
        ("POST /readyz", "", "405"),
        ("GET /readyz", "Origin: http://localhost\r\n", "403"),
        ("POST /readyz", "Origin: http://localhost\r\n", "403"),
        ("GET /", "", "400"),
        ("GET /", "Connection: upgrade\r\nUpgrade: websocket\r\n", "400"),
    ] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head =
            format!("{request} HTTP/1.1\r\nHost: localhost\r\n{header}Connection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = String::new();
        patiently("an answer", stream.read_to_string(&mut answer)).await.unwrap();
        assert_eq!(answer.split(' ').nth(1), Some(want), "{request} {header}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_an_origin_is_refused() {
    let fixture = Fixture::new();
    let mut stream = TcpStream::connect(listen(&fixture, Limits::default())).await.unwrap();
    let head = "GET / HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil\r\nConnection: upgrade\r\n\
                Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAA\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    patiently("an answer", stream.read_exact(&mut answer)).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 403");
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_the_server_stops_commands_of_websockets() {
    let fixture = Fixture::new();
    let mut client = connect(listen(&fixture, Limits::default())).await;
    client.request("command/exec", run("hold", json!({})));
    fixture.anchor.wait_for(1);
    patiently("the door closes", fixture.door.close()).await;
    fixture.anchor.wait_for_at_most(0);
    client.until_closed().await;
}
