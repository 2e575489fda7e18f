//! Connections that break at any moment.

use serde_json::json;

use super::follower::{Follower, bytes};
use crate::harness::Server;
use crate::random::Random;

const RUNS: u64 = 200;
/// Text, multi-byte characters, invalid bytes, both streams, and output after the exit.
const ACTIONS: &str = r"print h\xc3\xa9llo\n then write-bytes 20000 then eprint \xe2\x82 then print w\xf0\x9f\x98\x80rld then write-bytes 3000 err then print \xe2\x82";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_byte_is_missing_or_repeated_wherever_connections_break() {
    let server = Server::start().await;
    let mut broken = 0;
    for seed in 0..RUNS {
        let mut random = Random::new(seed);
        let streams = if random.below(2) == 0 { "merged" } else { "split" };
        let actions = match random.below(10) {
            0 => format!("background sleep-ms 60 then write-bytes 3000 end then {ACTIONS}"),
            _ => ACTIONS.to_owned(),
        };
        let path = server.path_of(&actions, json!({ "streams": streams })).await;
        let (told, breaks) = follow(&server, &path, &mut random).await;
        let whole = format!("{path}/output?late=true&max_bytes=1000000");
        let log = server.connect().await.get(&whole).await;
        assert!(told == log.body, "seed {seed}: {} bytes told of {}", told.len(), log.body.len());
        broken += breaks;
    }
    assert!(broken > RUNS, "only {broken} connections were broken");
    eprintln!("{RUNS} runs, {broken} connections broken");
}

/// All output, over connections that break after a random byte; and how many broke.
async fn follow(server: &Server, path: &str, random: &mut Random) -> (Vec<u8>, u64) {
    let (mut all, mut last, mut breaks) = (Vec::new(), None::<String>, 0);
    loop {
        // After the first few events, or anywhere.
        let most = if random.below(2) == 0 { 300 } else { 60_000 };
        let cut = random.below(most);
        let follower = Follower::new(server, path, "?late=true", last.as_deref()).await;
        let mut follower = follower.cut_after(cut as usize);
        while let Some(told) = follower.next().await {
            if told.name != "ending" {
                assert_eq!(told.data["range"]["start"], all.len());
                all.extend(bytes(&told));
            }
            last = Some(told.id);
        }
        if follower.is_over() {
            return (all, breaks);
        }
        breaks += 1;
    }
}
