//! One snapshot per answer: no ending without the last byte, no cursor that goes back.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lastbyte_testkit::pattern_bytes;
use serde_json::json;
use tokio::task::JoinSet;

use crate::harness::{Client, Server};

/// The number of polling clients.
const CLIENTS: usize = 16;
/// The bytes that a client reads at once: less than most processes print.
const MOST: usize = 3000;

fn processes() -> usize {
    std::env::var("LASTBYTE_TEST_PROCESSES").map_or(100, |count| count.parse().unwrap())
}

/// What one client has read of one process.
#[derive(Default)]
struct Seen {
    bytes: Vec<u8>,
    total: u64,
    ended: bool,
}

impl Seen {
    /// Reads once from its cursor, and checks that the answer is consistent.
    async fn look(&mut self, client: &mut Client, path: &str) {
        let at = self.bytes.len() as u64;
        let answer = client.get(&format!("{path}/output?from={at}&max_bytes={MOST}")).await;
        assert_eq!((answer.status, answer.number("lastbyte-from")), (200, at));
        let (next, total) = (answer.number("lastbyte-next"), answer.number("lastbyte-total"));
        assert_eq!(next, at + answer.body.len() as u64);
        assert!(total >= self.total && next <= total, "a length went back");
        assert!(
            next == total || answer.body.len() == MOST,
            "{next} of {total}: lengths of two instants"
        );
        self.total = total;
        self.bytes.extend(&answer.body);
        if self.ended {
            assert!(answer.head("lastbyte-ending").is_some(), "an ending was taken back");
        }
        if let Some(ending) = answer.head("lastbyte-ending") {
            let ending: serde_json::Value = serde_json::from_str(ending).unwrap();
            assert_eq!(ending["final_len"], total, "an ending without its last byte");
            assert_eq!(answer.number("lastbyte-final-len"), total);
            assert_eq!(answer.head("lastbyte-phase"), Some("ended"));
            self.ended = true;
        }
    }

    fn complete(&self) -> bool {
        self.ended && self.bytes.len() as u64 == self.total
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_and_lengths_are_from_one_instant_while_the_log_grows() {
    let server = Server::start().await;
    let path = server.path_of("flood", json!({})).await;
    let mut client = server.connect().await;
    client.post(&format!("{path}/wait"), &json!({ "output_past": 50_000 })).await;
    for _ in 0..1500 {
        let answer = client.get(&format!("{path}/output?from=-50000")).await;
        assert_eq!(answer.number("lastbyte-next"), answer.number("lastbyte-total"));
        assert_eq!(answer.body.len(), 50_000);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixteen_clients_never_see_an_ending_without_the_final_bytes() {
    let server = Arc::new(Server::start().await);
    let started = Arc::new(AtomicBool::new(false));
    let mut hammers = JoinSet::new();
    for _ in 0..CLIENTS {
        hammers.spawn(hammer(Arc::clone(&server), Arc::clone(&started)));
    }
    let mut lengths = HashMap::new();
    for index in 0..processes() {
        let length = 1 + index as u64 * 97 % 20_000;
        let path = server.path_of(&format!("write-bytes {length}"), json!({})).await;
        lengths.insert(path, length);
    }
    started.store(true, Ordering::Release);
    for seen in hammers.join_all().await {
        assert_eq!(seen.len(), lengths.len());
        for (path, seen) in seen {
            assert_eq!(seen.bytes, pattern_bytes(0..lengths[&path]), "{path}");
        }
    }
}

/// Polls every process, round after round, until all are started and complete.
async fn hammer(server: Arc<Server>, started: Arc<AtomicBool>) -> HashMap<String, Seen> {
    let mut client = server.connect().await;
    let mut all: HashMap<String, Seen> = HashMap::new();
    loop {
        let last_round = started.load(Ordering::Acquire);
        // The newest ones are growing; at the end all are polled.
        let limit = if last_round { 1000 } else { 10 };
        let listed = client.get(&format!("/v1/processes?limit={limit}")).await.json();
        for process in listed["processes"].as_array().unwrap() {
            let path = format!("/v1/processes/{}", process["id"].as_str().unwrap());
            let seen = all.entry(path.clone()).or_default();
            if !seen.complete() {
                seen.look(&mut client, &path).await;
            }
        }
        if last_round && all.values().all(Seen::complete) {
            return all;
        }
    }
}
