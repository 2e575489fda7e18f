//! A server that goes away and comes back.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use lastbyte_client::wire::{FollowQuery, StartRequest, Wait};
use lastbyte_client::{ClientError, Followed};

use crate::server::{Server, Step, answer, healthy, stream};

#[tokio::test]
async fn a_safe_request_is_repeated_until_it_is_answered_and_that_is_told_once() {
    static TOLD: AtomicU32 = AtomicU32::new(0);
    let hang = || vec![Step::Hang];
    let script =
        vec![vec![healthy(), Step::Hang], hang(), hang(), hang(), vec![healthy(), healthy()]];
    let server = Server::start(script);
    let client = server.client().on_reconnect(|| _ = TOLD.fetch_add(1, Ordering::Relaxed));
    client.health().await.unwrap();
    assert_eq!(TOLD.load(Ordering::Relaxed), 0);
    client.health().await.unwrap();
    client.health().await.unwrap();
    assert_eq!(TOLD.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_start_without_a_key_that_was_cut_off_is_unknown_and_not_repeated() {
    let server = Server::start(vec![vec![healthy(), Step::Hang], vec![healthy()]]);
    let client = server.client();
    client.health().await.unwrap();
    let error = client.start(&StartRequest::default()).await.unwrap_err();
    assert!(matches!(error, ClientError::StartUnknown { .. }), "{error:?}");
    let heard = server.heard();
    assert_eq!(heard.iter().filter(|heard| heard.starts_with("POST")).count(), 1, "{heard:?}");
}

#[tokio::test]
async fn a_server_that_was_never_there_is_not_waited_for() {
    let begun = Instant::now();
    let folder = tempfile::tempdir().unwrap();
    let client = lastbyte_client::Client::unix(folder.path().join("socket"));
    let error = client.health().await.unwrap_err();
    assert!(matches!(error, ClientError::Connect { .. }), "{error:?}");
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_server_that_stays_away_is_an_error_when_the_patience_is_over() {
    let server = Server::start(vec![vec![healthy(), Step::Hang]]);
    let client = server.client().patience(Duration::from_millis(50));
    client.health().await.unwrap();
    let error = client.health().await.unwrap_err();
    assert!(matches!(error, ClientError::Connect { .. }), "{error:?}");
}

#[tokio::test]
async fn the_timeout_of_a_wait_counts_over_all_its_connections() {
    let refused = answer(404, "", r#"{"error":{"code":"process_not_found","message":"no"}}"#);
    let mut script = vec![vec![Step::Hang]; 8];
    script.push(vec![refused]);
    let server = Server::start(script);
    let wait = Wait { timeout_ms: Some(60_000), exit: Some(true), ..Wait::default() };
    client_error(server.client().wait("p", &wait).await);
    let asked = |heard: &String| {
        let (_, json) = heard.split_once("\r\n\r\n")?;
        let wait: Wait = serde_json::from_str(json).ok()?;
        wait.timeout_ms
    };
    let timeouts: Vec<u64> = server.heard().iter().filter_map(asked).collect();
    assert_eq!(timeouts.len(), 9, "{timeouts:?}");
    // Pauses of 1, 2, 4 … 64 ms lie between them.
    assert!(timeouts[0] > 59_000 && timeouts[8] <= timeouts[0] - 100, "{timeouts:?}");
}

fn client_error<T: std::fmt::Debug>(answer: Result<T, ClientError>) {
    assert!(matches!(answer, Err(ClientError::Refused(_))), "{answer:?}");
}

#[tokio::test]
async fn a_follower_waits_for_the_server_and_tells_each_outage_once() {
    static TOLD: AtomicU32 = AtomicU32::new(0);
    let output = |at: u64| {
        let range = format!(r#"{{"start":{at},"end":{}}}"#, at + 1);
        let data = format!(r#"{{"range":{range},"content":{{"text":"x"}}}}"#);
        vec![stream(&format!("id: {}\nevent: output\ndata: {data}\n\n", at + 1))]
    };
    let (hang, end) = (|| vec![Step::Hang], vec![answer(204, "", "")]);
    let script = vec![output(0), hang(), hang(), output(1), vec![stream("")], output(2), end];
    let server = Server::start(script);
    let client = server.client().on_reconnect(|| _ = TOLD.fetch_add(1, Ordering::Relaxed));
    let mut following = client.follow("p", &FollowQuery::default()).await.unwrap();
    let mut ends = Vec::new();
    while let Some(Followed::Output(piece)) = following.next().await.unwrap() {
        ends.push(piece.range.end);
    }
    assert_eq!((ends, TOLD.load(Ordering::Relaxed)), (vec![1, 2, 3], 3));
}
