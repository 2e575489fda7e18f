//! What is no message is refused, and the rest goes on.

use serde_json::json;

use super::fixture::{Fixture, bytes, until_event};
use crate::codex::client::base64;
use crate::codex::fixture::fault;

#[tokio::test(flavor = "multi_thread")]
async fn malformed_lines_are_answered_and_end_nothing() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    fixture.started(&mut client, "p", "hold").await;
    fixture.anchor.wait_for(1);
    let lines: [&[u8]; 7] = [
        b"{not json",
        b"[]",
        b"{\"id\":1,\"method\":\"\xff\"}",
        b"{\"id\":1,\"id\":2,\"method\":\"m\"}",
        b"\xff\xfe",
        br#"{"id":null,"method":"environment/status"}"#,
        &b"[".repeat(100_000),
    ];
    for (count, line) in lines.into_iter().enumerate() {
        client.send_line(line);
        let refused = |got: &[serde_json::Value]| {
            let mut refusals = got.iter().filter(|message| message["id"] == -1);
            refusals.nth(count).cloned()
        };
        let refusal = client.until("a refusal", refused).await;
        let (code, text) = fault(&refusal);
        assert_eq!(code, -32600);
        assert!(text.starts_with("failed to parse JSON-RPC message"), "{text}");
    }
    client.send_line(b"  ");
    let status = client.call("environment/status", json!({})).await;
    assert_eq!(status["result"]["status"], "ready");
    assert_eq!(fixture.anchor.count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_huge_message_is_served_or_refused_and_the_next_one_is_served() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    client.call("process/start", fixture.start("p", "cat", json!({"pipeStdin": true}))).await;
    let write = |bytes: usize, id: &str| json!({"processId": "p", "chunk": base64(vec![b'x'; bytes]), "writeId": id});
    let accepted = client.call("process/write", write(12 << 20, "1")).await;
    assert_eq!(accepted["result"]["status"], "accepted");
    let refused = client.call("process/write", write(24 << 20, "2")).await;
    assert_eq!(fault(&refused).0, -32603);
    let all =
        |got: &[serde_json::Value]| (bytes(got, "p", "stdout").len() == 12 << 20).then_some(());
    client.until("what was accepted is written", all).await;
    let accepted = client.call("process/write", write(1, "2")).await;
    assert_eq!(accepted["result"]["status"], "accepted", "what was refused can be tried again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_that_is_too_long_is_skipped() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    client.send_line(&vec![b'x'; lastbyte_server::doors::codex::MAX_MESSAGE_BYTES + 1]);
    fixture.started(&mut client, "p", "print x").await;
    until_event(&mut client, "p", "closed").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_notification_or_an_answer_to_nothing_ends_the_connection() {
    for message in [json!({"method": "no/such"}), json!({"id": 1, "result": {}})] {
        let fixture = Fixture::new();
        let mut client = fixture.client().await;
        client.send(&message);
        client.until_closed().await;
    }
}
