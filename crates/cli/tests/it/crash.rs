//! kill -9 of the server under load: ended processes are unchanged, and nothing is made up.

use std::collections::HashMap;
use std::time::Duration;

use lastbyte_client::Client;
use lastbyte_client::wire::{OutputQuery, Process, StartRequest, Status, Wait};
use lastbyte_testkit::{pattern_bytes, testchild};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::daemon::Daemon;

const WORKERS: u64 = 8;

fn rounds() -> u64 {
    std::env::var("LASTBYTE_TEST_CRASHES").map_or(4, |count| count.parse().unwrap())
}

/// The output length and exit code of the command with this number.
fn wanted(number: u64) -> (u64, i32) {
    (1 + number * 7919 % 300_000, (number % 5) as i32)
}

/// A start of the command with this number, which is also its key.
fn request(number: u64) -> StartRequest {
    let (length, code) = wanted(number);
    let actions = format!("write-bytes {length} then exit {code}");
    let words = actions.split(' ').map(String::from);
    let program = testchild().into_os_string().into_string().unwrap();
    StartRequest {
        command: Some([program].into_iter().chain(words).collect()),
        key: Some(number.to_string()),
        wait: Some(Wait { exit: Some(true), ..Wait::default() }),
        ..StartRequest::default()
    }
}

async fn output(client: &Client, id: &str) -> Vec<u8> {
    let all = OutputQuery { max_bytes: Some(1 << 30), ..OutputQuery::default() };
    client.raw(id, &all).await.unwrap().bytes.to_vec()
}

/// Runs commands one after the other until the server is gone; returns the answers.
async fn work(
    client: Client,
    numbers: impl Iterator<Item = u64>,
    answered: UnboundedSender<()>,
) -> Vec<(u64, Process)> {
    let mut told = Vec::new();
    for number in numbers {
        match client.start(&request(number)).await {
            Ok(answer) => told.push((number, answer.process)),
            Err(_) => break,
        }
        _ = answered.send(()); // only the first ones are waited for
    }
    told
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restarted_server_has_exactly_the_processes_that_had_ended() {
    let mut daemon = Daemon::start();
    let mut told: HashMap<u64, Process> = HashMap::new();
    let (mut lost, mut ended) = (0, 0);
    for round in 0..rounds() {
        let mut workers = JoinSet::new();
        let (answered, mut answers) = unbounded_channel();
        for worker in 0..WORKERS {
            let numbers = (0..).map(move |count| (round << 32) + count * WORKERS + worker);
            let client = Client::unix(daemon.socket()).patience(Duration::ZERO);
            workers.spawn(work(client, numbers, answered.clone()));
        }
        for _ in 0..3 {
            answers.recv().await.expect("a worker works");
        }
        sleep_until(Instant::now() + Duration::from_millis(100 + round * 37 % 200)).await;
        daemon.kill();
        told.extend(workers.join_all().await.into_iter().flatten());
        daemon.start_again();
        let client = Client::unix(daemon.socket());
        for (number, process) in &told {
            let (length, code) = wanted(*number);
            assert_eq!(client.show(&process.id).await.unwrap(), *process);
            let status = &process.ending.as_ref().unwrap().status;
            assert_eq!(*status, Status::Exited { code });
            assert!(output(&client, &process.id).await == pattern_bytes(0..length));
        }
        (lost, ended) = nothing_is_invented(&client, &told).await;
    }
    eprintln!("{} kills, {} answers kept, {lost} lost, {ended} ended", rounds(), told.len());
}

/// Every other process has ended correctly, or is lost with the bytes that it wrote.
async fn nothing_is_invented(client: &Client, told: &HashMap<u64, Process>) -> (usize, usize) {
    let (mut lost, mut ended) = (0, 0);
    let mut query = lastbyte_client::wire::ListQuery::default();
    loop {
        let page = client.list(&query).await.unwrap();
        for process in page.processes {
            let number: u64 = process.key.as_ref().unwrap().parse().unwrap();
            let (length, wanted) = wanted(number);
            match process.ending.as_ref().unwrap().status {
                Status::Exited { code } => {
                    assert_eq!((code, process.total), (wanted, length));
                    ended += 1;
                }
                Status::Lost { .. } => {
                    assert!(!told.contains_key(&number), "an answer was taken back");
                    lost += 1;
                }
                Status::Signalled { .. } => panic!("nobody sent a signal: {process:?}"),
            }
            assert!(output(client, &process.id).await == pattern_bytes(0..process.total));
            // The key still belongs to this process.
            let again = client.start(&request(number)).await.unwrap();
            assert!(again.attached && again.process.id == process.id);
        }
        match page.next {
            Some(next) => query.before = Some(next),
            None => return (lost, ended),
        }
    }
}
