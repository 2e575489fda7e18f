use lastbyte_client::wire::{FollowQuery, Range, Stream};
use lastbyte_client::{ClientError, Followed, Piece};

use crate::server::{Server, answer, stream};

fn output(range: std::ops::Range<u64>, content: &str) -> String {
    let std::ops::Range { start, end } = range;
    let data = format!(r#"{{"range":{{"start":{start},"end":{end}}},"content":{content}}}"#);
    format!("id: {end}\nevent: output\ndata: {data}\n\n")
}

fn piece(start: u64, bytes: &[u8]) -> Followed {
    let range = Range { start, end: start + bytes.len() as u64 };
    Followed::Output(Piece { range, stream: None, at_unix_ns: None, bytes: bytes.to_vec() })
}

#[tokio::test]
async fn a_broken_follow_continues_after_the_last_byte() {
    let first = format!(":\n\n{}{}", output(0..2, r#"{"text":"é"}"#), "id: 9\nevent: out");
    let second = format!(
        "{}id: 7\nevent: dropped\ndata: {{\"range\":{{\"start\":3,\"end\":7}}}}\n\n",
        output(2..3, r#"{"base64":"/w=="}"#)
    );
    let script = vec![vec![stream(&first)], vec![stream(&second)], vec![answer(204, "", "")]];
    let server = Server::start(script);
    let query = FollowQuery { late: Some(true), ..FollowQuery::default() };
    let mut following = server.client().follow("p", &query).await.unwrap();
    let mut seen = Vec::new();
    while let Some(followed) = following.next().await.unwrap() {
        seen.push(followed);
    }
    let dropped = Followed::Dropped(Range { start: 3, end: 7 });
    assert_eq!(seen, [piece(0, "é".as_bytes()), piece(2, b"\xff"), dropped]);
    let heard = server.heard();
    assert!(heard[0].starts_with("GET /v1/processes/p/follow?late=true "), "{heard:?}");
    assert!(heard[2].contains("\r\nlast-event-id: 2\r\n"), "{heard:?}");
    assert!(heard[4].contains("\r\nlast-event-id: 7\r\n"), "{heard:?}");
}

#[tokio::test]
async fn a_log_that_cannot_be_read_is_an_error_and_not_retried() {
    let error = r#"{"error":{"code":"failed","message":"the disk is gone"}}"#;
    let server = Server::start(vec![vec![stream(&format!("event: failed\ndata: {error}\n\n"))]]);
    let mut following = server.client().follow("p", &FollowQuery::default()).await.unwrap();
    let refused = following.next().await.unwrap_err();
    assert!(matches!(&refused, ClientError::Refused(_)), "{refused:?}");
    assert_eq!(following.next().await.unwrap(), None);
}

#[tokio::test]
async fn split_streams_are_named() {
    let data = r#"{"range":{"start":0,"end":1},"stream":"stderr","content":{"text":"x"}}"#;
    let body = format!("id: 1-ended\nevent: late\ndata: {data}\n\n");
    let server = Server::start(vec![vec![stream(&body)]]);
    let mut following = server.client().follow("p", &FollowQuery::default()).await.unwrap();
    let range = Range { start: 0, end: 1 };
    let want =
        Piece { range, stream: Some(Stream::Stderr), at_unix_ns: None, bytes: b"x".to_vec() };
    assert_eq!(following.next().await.unwrap(), Some(Followed::Late(want)));
}
