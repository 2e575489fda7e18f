//! Sessions outlive connections, for a while.

use std::collections::BTreeMap;
use std::time::Duration;

use base64_simd::STANDARD;
use lastbyte_server::doors::exec_server::Times;
use lastbyte_testkit::pattern_bytes;
use serde_json::{Value, json};

use super::fixture::{Fixture, bytes, check_numbers, events, shake_hands, until_event};
use crate::codex::client::{Client, base64};
use crate::codex::fixture::fault;

/// Disconnects a client, and waits until the server has noticed.
async fn leave(mut client: Client) -> Vec<Value> {
    client.close();
    client.until_closed().await;
    client.served.take().unwrap().await.unwrap();
    client.got
}

/// Reads a process to its end, as a client that is back does: what is pushed meanwhile is read as well.
async fn read_rest(client: &mut Client, id: &str, got: &[Value]) -> BTreeMap<u64, Vec<u8>> {
    let output = events(got, id).into_iter().filter(|event| event.0 == "stdout");
    let mut chunks: BTreeMap<u64, Vec<u8>> = output.map(|event| (event.1, event.2)).collect();
    loop {
        let after = chunks.keys().last().copied().unwrap_or(0);
        let read = json!({"processId": id, "afterSeq": after, "waitMs": 60_000});
        let answer = client.call("process/read", read).await["result"].clone();
        let read = answer["chunks"].as_array().unwrap();
        let chunk = |chunk: &Value| {
            let bytes = STANDARD.decode_to_vec(chunk["chunk"].as_str().unwrap()).unwrap();
            (chunk["seq"].as_u64().unwrap(), bytes)
        };
        chunks.extend(read.iter().map(chunk));
        if answer["closed"] == true {
            return chunks;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_comes_back_has_lost_nothing() {
    let fixture = Fixture::new();
    let mut client = fixture.connect();
    let session = shake_hands(&mut client, Value::Null).await;
    let cat = fixture.start("cat", "cat", json!({"pipeStdin": true}));
    client.call("process/start", cat).await;
    fixture.started(&mut client, "p", "write-bytes 2000000 then join then write-bytes 3").await;
    let some = |got: &[Value]| (!bytes(got, "p", "stdout").is_empty()).then_some(());
    client.until("output", some).await;
    let got = leave(client).await;
    let mut client = fixture.connect();
    assert_eq!(shake_hands(&mut client, json!(session)).await, session);
    let chunks = read_rest(&mut client, "p", &got).await;
    assert!(chunks.keys().copied().eq(1..=chunks.len() as u64), "each once, without a gap");
    let all: Vec<u8> = chunks.into_values().flatten().collect();
    assert_eq!(all, pattern_bytes(0..2_000_003));
    // What happens from here on comes by itself, under the next number.
    let write = json!({"processId": "cat", "chunk": base64("x"), "writeId": "1"});
    client.call("process/write", write).await;
    let pushed = |got: &[Value]| events(got, "cat").first().cloned();
    let pushed = client.until("an event", pushed).await;
    assert_eq!(pushed, ("stdout".to_owned(), 1, b"x".to_vec()));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_happened_before_a_client_came_back_is_not_pushed_again() {
    let fixture = Fixture::new();
    let mut client = fixture.connect();
    let session = shake_hands(&mut client, Value::Null).await;
    fixture.started(&mut client, "p", "print x").await;
    until_event(&mut client, "p", "closed").await;
    leave(client).await;
    let mut client = fixture.connect();
    shake_hands(&mut client, json!(session)).await;
    fixture.started(&mut client, "another", "print y").await;
    until_event(&mut client, "another", "closed").await;
    assert_eq!(events(&client.got, "p"), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_has_one_connection_at_a_time() {
    let fixture = Fixture::new();
    let mut first = fixture.connect();
    let session = shake_hands(&mut first, Value::Null).await;
    let mut second = fixture.connect();
    let resume = |id: &str| json!({"clientName": "test", "resumeSessionId": id});
    let refused = second.call("initialize", resume(&session)).await;
    let want = format!("session {session} is already attached to another connection");
    assert_eq!(fault(&refused), (-32010, want.as_str()));
    let refused = second.call("initialize", resume("nobody")).await;
    assert_eq!(fault(&refused), (-32600, "unknown session id nobody"));
    leave(first).await;
    assert_eq!(shake_hands(&mut second, json!(session)).await, session);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_whose_client_stays_away_ends_with_everything_it_started() {
    let detached = Duration::from_millis(200);
    let fixture = Fixture::with(|settings| settings.times = Times { detached, ..Times::default() });
    let mut client = fixture.connect();
    let session = shake_hands(&mut client, Value::Null).await;
    fixture.started(&mut client, "running", "stubborn-tree 3 then hold").await;
    fixture.started(&mut client, "exited", "setsid-background hold end").await;
    until_event(&mut client, "exited", "exited").await;
    fixture.anchor.wait_for(5);
    leave(client).await;
    fixture.anchor.wait_for_at_most(0);
    let mut client = fixture.connect();
    let resume = json!({"clientName": "test", "resumeSessionId": session});
    let refused = client.call("initialize", resume).await;
    assert_eq!(fault(&refused), (-32600, format!("unknown session id {session}").as_str()));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_is_free_again_after_a_while_and_what_was_left_behind_is_still_the_sessions() {
    let times =
        Times { detached: Duration::from_millis(200), remembered: Duration::from_millis(1) };
    let fixture = Fixture::with(|settings| settings.times = times);
    let mut client = fixture.client().await;
    let leaves = "setsid-background close-stdout then close-stderr then hold end";
    fixture.started(&mut client, "p", leaves).await;
    until_event(&mut client, "p", "closed").await;
    fixture.anchor.wait_for(1);
    loop {
        client.got.clear();
        let answer =
            client.call("process/start", fixture.start("p", "print again", json!({}))).await;
        if answer["result"].is_object() {
            break;
        }
        assert_eq!(fault(&answer), (-32600, "process p already exists"));
    }
    until_event(&mut client, "p", "closed").await;
    check_numbers(&client.got, "p");
    assert_eq!(fixture.anchor.count(), 1);
    leave(client).await;
    fixture.anchor.wait_for_at_most(0);
}
