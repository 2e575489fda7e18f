//! Who gets in over WebSockets.

use std::net::SocketAddr;

use lastbyte_server::doors::exec_server::SecretPath;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::fixture::{Fixture, over_websocket, shake_hands, until_event};

/// The status of the answer to a request for a WebSocket.
async fn status(address: SocketAddr, path: &str, header: &str) -> u16 {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n{header}\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = [0; 12];
    stream.read_exact(&mut head).await.unwrap();
    std::str::from_utf8(&head[9..]).unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_secret_path_lets_a_client_in() {
    let fixture = Fixture::new();
    let path = SecretPath::random().unwrap();
    let address = fixture.listen(path.clone());
    let secret = path.suffix();
    assert!(secret.len() > 22, "at least 128 bits");
    for wrong in
        ["/", "/codex", &secret[..secret.len() - 1], &format!("{secret}/"), &format!("{secret}x")]
    {
        assert_eq!(status(address, wrong, "").await, 404, "{wrong}");
    }
    assert_eq!(status(address, secret, "Origin: http://localhost\r\n").await, 403);
    assert_eq!(status(address, "/readyz", "").await, 200);
    let mut client = over_websocket(address, secret).await;
    shake_hands(&mut client, Value::Null).await;
    fixture.started(&mut client, "p", "print x").await;
    until_event(&mut client, "p", "closed").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_vanishes_can_come_back() {
    let fixture = Fixture::new();
    let address = fixture.listen(SecretPath::open());
    let mut client = over_websocket(address, "/").await;
    let session = shake_hands(&mut client, Value::Null).await;
    fixture.started(&mut client, "p", "hold").await;
    fixture.anchor.wait_for(1);
    drop(client);
    let mut client = over_websocket(address, "/").await;
    loop {
        let params = serde_json::json!({"clientName": "test", "resumeSessionId": session});
        let answer = client.call("initialize", params).await;
        match answer["error"]["code"].as_i64() {
            None => break,
            code => assert_eq!(code, Some(-32010), "until the server has noticed: {answer}"),
        }
    }
    assert_eq!(fixture.anchor.count(), 1);
}
