//! At the moment of an exit, nobody sees the ending without the last byte.

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::client::{As, output};
use crate::harness::Server;

const BYTES: u64 = 50_000;

/// The number of processes; a manual run uses thousands.
fn processes() -> usize {
    std::env::var("LASTBYTE_TEST_CODER_RACES").map_or(200, |count| count.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ended_process_has_its_final_output() {
    let server = Server::start().await;
    // Written after the leader's exit, so the ending follows the last byte almost at once.
    let command = format!("printf %0{BYTES}d 1 &");
    let (mut left, mut whole) = (processes(), 0);
    while left > 0 {
        let round = left.min(8);
        left -= round;
        let mut hammers = JoinSet::new();
        for _ in 0..round {
            let id = As::nobody().start(&server, &command, json!({})).await;
            for _ in 0..3 {
                hammers.spawn(first_ended(server.connect().await, id.clone()));
            }
        }
        for (id, seen) in hammers.join_all().await {
            let mut client = server.connect().await;
            assert_eq!(seen, client.get(&output(&id)).await.json());
            // On a busy machine the drain may be over before anything was written.
            let shown = client.get(&format!("/v1/processes/{id}")).await.json();
            let final_len = shown["ending"]["final_len"].as_u64().unwrap();
            let omitted = final_len.checked_sub(32 * 1024);
            let told =
                seen.get("truncated").map(|cut| (&cut["original_bytes"], &cut["omitted_bytes"]));
            let want = (json!(final_len), json!(omitted.unwrap_or(0)));
            let want = (final_len > 16 * 1024).then_some((&want.0, &want.1));
            assert_eq!((told, &seen["exit_code"]), (want, &json!(0)), "{id}");
            whole += usize::from(final_len == BYTES);
        }
    }
    assert!(whole > 0, "nothing exceeded the buffer");
}

/// Polls without a pause until the process has ended.
async fn first_ended(mut client: crate::harness::Client, id: String) -> (String, Value) {
    let path = output(&id);
    loop {
        let answer = client.get(&path).await.json();
        if answer["running"] == false {
            return (id, answer);
        }
        assert!(answer.get("exit_code").is_none(), "{answer}");
    }
}
