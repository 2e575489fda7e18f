//! Connections that break at any moment, in both directions.

use futures_util::SinkExt;
use lastbyte_testkit::{PATIENCE, pattern_bytes};
use serde_json::json;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

use super::{Came, attach, next, words};
use crate::harness::Server;
use crate::random::Random;

const RUNS: u64 = 200;
const LENGTH: usize = 40_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_byte_is_missing_or_repeated_wherever_connections_break() {
    let server = Server::start().await;
    let mut broken = 0;
    for seed in 0..RUNS {
        let mut random = Random::new(seed);
        let path = server.path_of("cat", json!({ "stdin": "open" })).await;
        let input = pattern_bytes(seed..seed + LENGTH as u64);
        let mut output = Vec::new();
        while !timeout(PATIENCE, echo(&server, &path, &input, &mut output, &mut random))
            .await
            .unwrap_or_else(|_| panic!("seed {seed} hangs"))
        {
            broken += 1;
        }
        assert!(output == input, "seed {seed}: {} bytes of {LENGTH}", output.len());
    }
    assert!(broken > RUNS, "only {broken} connections were broken");
    eprintln!("{RUNS} runs, {broken} connections broken");
}

/// Continues both directions for a random number of messages; returns whether everything is done.
async fn echo(
    server: &Server,
    path: &str,
    input: &[u8],
    output: &mut Vec<u8>,
    random: &mut Random,
) -> bool {
    let mut socket =
        attach(server, path, &format!("?only_writer=true&from={}", output.len())).await;
    let attached = words(&mut socket).await;
    assert_eq!(attached["cursor"], output.len());
    let mut sent = attached["accepted"].as_u64().map_or(input.len(), |accepted| accepted as usize);
    for _ in 0..random.below(12) {
        if sent < input.len() {
            let count = (random.below(6000) as usize + 1).min(input.len() - sent);
            socket.send(Message::binary(input[sent..sent + count].to_vec())).await.unwrap();
            sent += count;
            // Input of the broken connection may already have been echoed.
            if output.len() >= sent || random.below(2) == 0 {
                continue;
            }
        } else {
            socket.send(Message::text(r#"{"kind":"close_stdin"}"#)).await.unwrap();
        }
        match next(&mut socket).await {
            Some(Came::Bytes(bytes)) => output.extend(bytes),
            Some(Came::Words(words)) if words["kind"] == "ending" => return true,
            Some(Came::Words(words)) => assert_eq!(words["kind"], "refused", "{words}"),
            None => panic!("it ends without an ending"),
        }
    }
    // Some input may still be on its way, and some output may be unread.
    drop(socket.into_inner());
    false
}
