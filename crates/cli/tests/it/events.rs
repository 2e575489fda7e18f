use std::io::{BufRead, BufReader};
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use crate::daemon::Daemon;
use crate::harness::start;

#[test]
fn events_are_printed_as_they_happen_until_nobody_reads() {
    let daemon = Daemon::start();
    let mut events = start(daemon.lastbyte(&["events", "--json"]));
    let mut lines = BufReader::new(events.stdout.take().unwrap()).lines();
    // The feed starts when the server has the request, which only an event shows.
    let id = start_until_heard(&daemon, &mut lines);
    let mut kinds = Vec::new();
    while kinds.last().is_none_or(|kind| kind != "ended") {
        let event: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        if event["process"] == *id {
            kinds.push(event["event"]["kind"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(kinds, ["first_output", "ended"]);
    drop(lines);
    assert_eq!(events.wait().unwrap().code(), Some(0));
}

/// Starts processes until the feed reports one; returns its id.
fn start_until_heard(
    daemon: &Daemon,
    lines: &mut impl Iterator<Item = std::io::Result<String>>,
) -> String {
    let heard = AtomicBool::new(false);
    let first = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !heard.load(Ordering::Relaxed) {
                daemon.testchild(&[], "print x");
            }
        });
        let first = lines.find(|line| line.as_ref().unwrap().contains(r#""kind":"started""#));
        heard.store(true, Ordering::Relaxed);
        first.unwrap().unwrap()
    });
    let event: Value = serde_json::from_str(&first).unwrap();
    event["process"].as_str().unwrap().to_owned()
}

#[test]
fn the_feed_ends_with_the_server() {
    let daemon = Daemon::start();
    let mut events = start(daemon.lastbyte(&["events", "--json"]));
    let mut lines = BufReader::new(events.stdout.take().unwrap()).lines();
    start_until_heard(&daemon, &mut lines);
    assert_eq!(daemon.finish(&["shutdown"]).code, Some(0));
    let output = events.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(125), "{output:?}");
    assert_eq!(output.stderr, b"lastbyte: the server is gone\n", "{output:?}");
}

#[test]
fn a_start_is_printed_with_its_command() {
    let daemon = Daemon::start();
    let mut events = start(daemon.lastbyte(&["events"]));
    let mut lines = BufReader::new(events.stdout.take().unwrap()).lines();
    let heard = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !heard.load(Ordering::Relaxed) {
                daemon.result(&["start", "echo $((1 + 2))"]);
            }
        });
        let mut lines = lines.by_ref().map(Result::unwrap);
        let started = lines.find(|line| line.contains("  started"));
        heard.store(true, Ordering::Relaxed);
        let started = started.expect("a line");
        assert!(started.ends_with("  started       echo $((1 + 2))"), "{started:?}");
    });
    drop(lines);
    assert_eq!(events.wait().unwrap().code(), Some(0));
}

#[test]
fn a_process_with_a_name_is_printed_by_it() {
    let daemon = Daemon::start();
    let mut events = start(daemon.lastbyte(&["events", "--utc"]));
    let mut lines = BufReader::new(events.stdout.take().unwrap()).lines().map(Result::unwrap);
    let heard = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !heard.load(Ordering::Relaxed) {
                daemon.finish(&["start", "--name", "web", "true"]);
            }
        });
        let started = lines.find(|line| line.contains("  started"));
        heard.store(true, Ordering::Relaxed);
        let started = started.expect("a line");
        assert!(started.ends_with("Z  web       started       true"), "{started:?}");
    });
    drop(lines);
    assert_eq!(events.wait().unwrap().code(), Some(0));
}
