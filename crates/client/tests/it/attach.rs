use futures_util::{SinkExt, StreamExt};
use lastbyte_client::wire::{AttachNotice, AttachQuery, AttachRequest, Range};
use lastbyte_client::{Attached, Client, ClientError, FromProcess};
use lastbyte_testkit::{PATIENCE, pattern_bytes};
use tokio::net::TcpListener;
use tokio_tungstenite::tungstenite::Message;

use crate::server::{answer, over_tcp};

#[tokio::test]
async fn the_cursor_counts_received_and_dropped_bytes() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = Client::tcp(listener.local_addr().unwrap(), Some("secret".into()));
    let server = tokio::spawn(async move {
        let stream = listener.accept().await.unwrap().0;
        let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
        for message in [
            Message::text(r#"{"kind":"attached","cursor":5,"accepted":2}"#),
            Message::binary(&b"abc"[..]),
            Message::text(r#"{"kind":"dropped","range":{"start":8,"end":20}}"#),
            Message::binary(&b"d"[..]),
        ] {
            socket.send(message).await.unwrap();
        }
        let heard = [socket.next().await.unwrap().unwrap(), socket.next().await.unwrap().unwrap()];
        socket.close(None).await.unwrap();
        heard
    });
    let query = AttachQuery { from: Some(-3), ..AttachQuery::default() };
    let attached = client.attach("p", &query).await.unwrap();
    let Attached { mut reader, mut writer, accepted } = attached;
    assert_eq!((reader.cursor(), accepted), (5, Some(2)));
    writer.write(&b"in"[..]).await.unwrap();
    writer.request(AttachRequest::Resize { rows: 2, cols: 3 }).await.unwrap();
    let mut came = Vec::new();
    while let Some(message) = reader.next().await.unwrap() {
        came.push((message, reader.cursor()));
    }
    let dropped = AttachNotice::Dropped { range: Range { start: 8, end: 20 } };
    let output = |bytes: &'static [u8]| FromProcess::Output(bytes.into());
    let want = [(output(b"abc"), 8), (FromProcess::Notice(dropped), 20), (output(b"d"), 21)];
    assert_eq!(came, want);
    let resize = Message::text(r#"{"kind":"resize","rows":2,"cols":3}"#);
    assert_eq!(server.await.unwrap(), [Message::binary(&b"in"[..]), resize]);
}

#[tokio::test]
async fn long_input_is_sent_in_several_messages_while_output_arrives() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = Client::tcp(listener.local_addr().unwrap(), None);
    let input = pattern_bytes(0..32 << 20);
    let server = tokio::spawn(async move {
        let stream = listener.accept().await.unwrap().0;
        let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
        let hello = Message::text(r#"{"kind":"attached","cursor":0,"accepted":0}"#);
        socket.send(hello).await.unwrap();
        let mut came = Vec::new();
        // More in each direction than the buffers hold, so each direction waits for the other.
        while came.len() < 32 << 20 {
            let message = socket.next().await.unwrap().unwrap().into_data();
            assert!(message.len() <= 1 << 20, "{}", message.len());
            came.extend_from_slice(&message);
            socket.send(Message::binary(message)).await.unwrap();
        }
        assert!(matches!(socket.next().await, Some(Ok(Message::Close(_)))));
        // The next call sends the answer to it.
        assert!(socket.next().await.is_none());
        came
    });
    let attached = client.attach("p", &AttachQuery::default()).await.unwrap();
    let Attached { mut reader, mut writer, .. } = attached;
    let writing = async {
        writer.write(input.clone()).await.unwrap();
        writer.close().await.unwrap();
    };
    let reading = async {
        let mut echo = Vec::new();
        while let Some(FromProcess::Output(bytes)) = reader.next().await.unwrap() {
            echo.extend_from_slice(&bytes);
        }
        echo
    };
    let both = async { tokio::join!(writing, reading) };
    let ((), echo) = tokio::time::timeout(PATIENCE, both).await.expect("neither waits for ever");
    assert!(echo == input);
    assert!(server.await.unwrap() == input);
}

#[tokio::test]
async fn an_attach_that_is_refused_says_why() {
    let body = r#"{"error":{"code":"process_not_found","message":"there is no process p"}}"#;
    let (addr, heard) = over_tcp(vec![answer(404, "", body)]);
    let client = Client::tcp(addr, Some("secret".into()));
    let error = client.attach("p", &AttachQuery::default()).await.unwrap_err();
    assert!(matches!(&error, ClientError::Refused(_)), "{error:?}");
    let heard = heard.requests();
    assert!(heard[0].starts_with("GET /v1/processes/p/attach "), "{heard:?}");
    assert!(heard[0].contains("Bearer secret"), "{heard:?}");
}
