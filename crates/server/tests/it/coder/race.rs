//! Around the instant of an exit nobody sees the end without the last byte.

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::client::{As, output};
use crate::harness::Server;

const BYTES: u64 = 50_000;

/// How many processes; by hand it is thousands.
fn processes() -> usize {
    std::env::var("LASTBYTE_TEST_CODER_RACES").map_or(200, |count| count.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_sees_a_process_as_ended_has_its_final_output() {
    let server = Server::start().await;
    // Written when the leader has gone: between the last byte and the end there is next to nothing.
    let command = format!("printf %0{BYTES}d 1 &");
    let mut left = processes();
    while left > 0 {
        let round = left.min(8);
        left -= round;
        let mut hammers = JoinSet::new();
        for _ in 0..round {
            let id = As::nobody().start(&server, &command, json!({})).await;
            for _ in 0..3 {
                hammers.spawn(first_ended(server.connect().await, output(&id)));
            }
        }
        for (path, seen) in hammers.join_all().await {
            let last = server.connect().await.get(&path).await.json();
            assert_eq!(seen, last);
            assert_eq!(seen["truncated"]["original_bytes"], BYTES);
            assert_eq!(seen["truncated"]["omitted_bytes"], BYTES - 32 * 1024);
            assert_eq!(seen["exit_code"], 0);
        }
    }
}

/// Asks without a pause until the process is said to have ended.
async fn first_ended(mut client: crate::harness::Client, path: String) -> (String, Value) {
    loop {
        let answer = client.get(&path).await.json();
        if answer["running"] == false {
            return (path, answer);
        }
        assert!(answer.get("exit_code").is_none(), "{answer}");
    }
}
