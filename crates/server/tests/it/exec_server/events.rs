//! Events: one row of numbers over output, `exited` and `closed`, in order.

use lastbyte_testkit::pattern_bytes;
use serde_json::json;

use super::fixture::{Fixture, bytes, check_numbers, events, until_event};
use crate::codex::client::base64;

#[tokio::test(flavor = "multi_thread")]
async fn events_come_in_the_order_of_their_numbers_after_the_answer() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    let ids: Vec<String> = (0..20).map(|id| id.to_string()).collect();
    let requests: Vec<i64> = ids
        .iter()
        .map(|id| {
            client
                .request("process/start", fixture.start(id, "alternate 300 then exit 3", json!({})))
        })
        .collect();
    for (id, request) in ids.iter().zip(requests) {
        until_event(&mut client, id, "closed").await;
        let answered = client.got.iter().position(|message| message["id"] == request).unwrap();
        let first = client.got.iter().position(|message| message["params"]["processId"] == *id);
        assert!(answered < first.unwrap(), "no event before the answer");
        check_numbers(&client.got, id);
        for stream in ["stdout", "stderr"] {
            assert_eq!(bytes(&client.got, id, stream), pattern_bytes(0..300), "{stream}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn exited_comes_at_once_and_closed_when_nobody_holds_the_output() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    fixture.started(&mut client, "p", "background hold end then print early").await;
    let exited = until_event(&mut client, "p", "exited").await;
    let read = client.call("process/read", json!({"processId": "p"})).await;
    assert_eq!(
        (&read["result"]["exited"], &read["result"]["closed"]),
        (&json!(true), &json!(false))
    );
    drop(fixture.anchor);
    let closed = until_event(&mut client, "p", "closed").await;
    assert!(exited < closed);
    check_numbers(&client.got, "p");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_pushed_can_be_read_again_in_pieces() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    fixture.started(&mut client, "p", "alternate 40 then write-bytes 300000").await;
    until_event(&mut client, "p", "closed").await;
    let (mut read, mut after) = (Vec::new(), 0);
    loop {
        let params = json!({"processId": "p", "afterSeq": after, "maxBytes": 50_000});
        let answer = client.call("process/read", params).await["result"].clone();
        let chunks = answer["chunks"].as_array().unwrap().clone();
        if chunks.is_empty() {
            assert_eq!(answer["nextSeq"], until_event(&mut client, "p", "closed").await + 1);
            break;
        }
        after = answer["nextSeq"].as_u64().unwrap() - 1;
        read.extend(chunks);
    }
    let chunk = |(stream, seq, bytes): (String, u64, Vec<u8>)| json!({"seq": seq, "stream": stream, "chunk": base64(bytes)});
    let pushed = events(&client.got, "p").into_iter().filter(|event| event.0.starts_with("std"));
    assert_eq!(read, pushed.map(chunk).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_is_done_once_for_each_id() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    let start = fixture.start("p", "cat", json!({"pipeStdin": true}));
    client.call("process/start", start).await;
    for (id, text) in [("1", "a"), ("1", "a"), ("2", "b"), ("1", "c")] {
        let write = json!({"processId": "p", "chunk": base64(text), "writeId": id});
        assert_eq!(client.call("process/write", write).await["result"]["status"], "accepted");
    }
    let two = |got: &[serde_json::Value]| (bytes(got, "p", "stdout").len() >= 2).then_some(());
    client.until("both are written", two).await;
    client.call("process/terminate", json!({"processId": "p"})).await;
    until_event(&mut client, "p", "closed").await;
    assert_eq!(bytes(&client.got, "p", "stdout"), b"ab");
}
