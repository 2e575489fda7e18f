//! Input that no client should send: skipped or answered, and never fatal.

use serde_json::json;

use super::client::Client;
use super::fixture::{Fixture, result, run};

async fn is_served(client: &mut Client) {
    let answer = client.exec(run("print alive", json!({}))).await;
    assert_eq!(result(&answer), (0, "alive", ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_lines_are_skipped_and_commands_keep_running() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    client.request("command/exec", run("hold", json!({})));
    fixture.anchor.wait_for(1);
    let count = client.got.len();
    let lines: [&[u8]; 10] = [
        b"",
        b"\r",
        b"{not json",
        b"[]",
        b"\"text\"",
        b"null",
        b"{\"id\":1,\"method\":\"x\xff\"}",
        b"\xff\xfe\x00",
        b"{\"id\":null,\"method\":\"command/exec\",\"params\":{\"command\":[\"true\"]}}",
        b"{\"method\":\"no/such/notification\"}",
    ];
    lines.iter().for_each(|line| client.send_line(line));
    is_served(&mut client).await;
    assert_eq!(client.got.len(), count + 1, "{:?}", client.got);
    assert_eq!(fixture.anchor.count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_may_end_with_crlf() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    let params = run("print crlf", json!({}));
    let line = json!({"id": 500, "method": "command/exec", "params": params}).to_string() + "\r";
    client.send_line(line.as_bytes());
    assert_eq!(result(&client.answer(500).await).1, "crlf");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_huge_line_is_a_valid_request() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    let large = "x".repeat(22 << 20);
    client.send_line(padded(900, &large).as_bytes());
    assert_eq!(result(&client.answer(900).await).1, "ok");
    client.send_line(large.as_bytes());
    client.send_line("[".repeat(5 << 20).as_bytes());
    is_served(&mut client).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_past_the_limit_is_skipped() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    let most = lastbyte_server::doors::codex::MAX_MESSAGE_BYTES;
    client.send_line(padded(1000, &"x".repeat(most)).as_bytes());
    is_served(&mut client).await;
    assert!(!client.got.iter().any(|message| message["id"] == 1000));
}

/// A request with an unknown member.
fn padded(id: i64, padding: &str) -> String {
    let params = run("print ok", json!({}));
    format!(r#"{{"id":{id},"method":"command/exec","params":{params},"padding":"{padding}"}}"#)
}
