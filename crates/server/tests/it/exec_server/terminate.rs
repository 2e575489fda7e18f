//! `process/terminate` kills a tree that runs, and spares what an ended one left behind.

use std::time::Duration;

use lastbyte_testkit::is_alive;
use serde_json::json;

use super::fixture::{Fixture, until_event};
use crate::codex::client::{Client, base64};

async fn terminate(client: &mut Client, id: &str) -> serde_json::Value {
    client.call("process/terminate", json!({"processId": id})).await["result"]["running"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn exited_is_told_when_the_whole_tree_is_dead() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    fixture
        .started(&mut client, "p", "stubborn-tree 5 then setsid-background hold end then hold")
        .await;
    let tree = fixture.anchor.wait_for(7);
    assert_eq!(terminate(&mut client, "p").await, true);
    until_event(&mut client, "p", "exited").await;
    let left: Vec<u32> = tree.into_iter().filter(|pid| is_alive(*pid)).collect();
    assert_eq!(left, Vec::<u32>::new(), "nobody of the tree lives");
    until_event(&mut client, "p", "closed").await;
    assert_eq!(terminate(&mut client, "p").await, false);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_background_child_of_an_ended_process_is_spared() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    for (id, leaves) in [
        ("held", "background hold end"),
        ("free", "background close-stdout then close-stderr then hold end"),
    ] {
        fixture.started(&mut client, id, leaves).await;
        until_event(&mut client, id, "exited").await;
    }
    fixture.anchor.wait_for(2);
    for id in ["held", "free"] {
        assert_eq!(terminate(&mut client, id).await, false);
    }
    // A kill would come right after the answer.
    _ = tokio::time::timeout(Duration::from_millis(500), std::future::pending::<()>()).await;
    assert_eq!(fixture.anchor.count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_never_behind_reads_that_wait_or_writes_that_nobody_reads() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    let start = fixture.start("p", "hold", json!({"pipeStdin": true}));
    client.call("process/start", start).await;
    let read = json!({"processId": "p", "waitMs": u64::MAX, "more": "x".repeat(1000)});
    let reads: Vec<i64> = (0..3000).map(|_| client.request("process/read", read.clone())).collect();
    let much = base64(vec![b'x'; 100_000]);
    let writes: Vec<i64> = (0..200)
        .map(|id| {
            client.request(
                "process/write",
                json!({"processId": "p", "chunk": much, "writeId": id.to_string()}),
            )
        })
        .collect();
    assert_eq!(terminate(&mut client, "p").await, true);
    for request in reads.into_iter().chain(writes) {
        client.answer(request).await;
    }
    until_event(&mut client, "p", "closed").await;
}
