//! Clients whose server is killed and comes back on the same socket.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::Child;

use lastbyte_testkit::eventually;

use crate::daemon::Daemon;
use crate::harness::start;
use crate::pty::Pty;

const RECONNECTED: &str = "lastbyte: the connection to the server was lost; reconnected\n";

/// A server that was killed with its keeper knows no more of a process.
const LOST: &str = "lastbyte: lost: the server ended before the process did";

/// What it wrote on standard error, and its exit code.
fn end_of(child: Child) -> (String, Option<i32>) {
    let output = child.wait_with_output().unwrap();
    (String::from_utf8_lossy(&output.stderr).into_owned(), output.status.code())
}

fn kill_and_start_again(daemon: &mut Daemon) {
    daemon.kill();
    daemon.start_again();
}

#[test]
fn followers_go_on_and_say_so_once() {
    for option in ["-f", "-ft"] {
        let mut daemon = Daemon::start();
        let id = daemon.testchild(&[], r"print x\n then hold");
        let mut follower = start(daemon.lastbyte(&["logs", option, &id]));
        let mut stdout = BufReader::new(follower.stdout.take().unwrap());
        stdout.read_line(&mut String::new()).unwrap();
        kill_and_start_again(&mut daemon);
        let (stderr, code) = end_of(follower);
        assert!(stderr.starts_with(&format!("{RECONNECTED}{LOST}")), "{option}: {stderr}");
        assert_eq!((stderr.lines().count(), code), (2, Some(0)), "{option}");
        let mut rest = String::new();
        stdout.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "", "{option}");
    }
}

#[test]
fn a_wait_goes_on_and_says_so_once() {
    let mut daemon = Daemon::start();
    let id = daemon.testchild(&[], "hold");
    let wait = start(daemon.lastbyte(&["wait", &id]));
    until_waiting(&daemon);
    kill_and_start_again(&mut daemon);
    let (stderr, code) = end_of(wait);
    assert!(stderr.starts_with(&format!("{RECONNECTED}{LOST}")), "{stderr}");
    assert_eq!((stderr.lines().count(), code), (2, Some(125)));
}

#[test]
fn a_wait_with_a_status_line_says_so_once_on_a_line_of_its_own() {
    let mut daemon = Daemon::start();
    let id = daemon.testchild(&[], "hold");
    let mut pty = Pty::new(24, 80);
    let wait = pty.run(daemon.lastbyte(&["wait", &id]));
    pty.shows("waiting for ");
    kill_and_start_again(&mut daemon);
    assert_eq!(pty.ends(wait), Some(125));
    let told = format!("\n{}", RECONNECTED.replace('\n', "\r\n"));
    assert_eq!(pty.seen.matches(&told).count(), 1, "{:?}", pty.seen);
    assert_eq!(pty.seen.matches("reconnected").count(), 1, "{:?}", pty.seen);
}

fn until_waiting(daemon: &Daemon) {
    let metrics = || {
        let mut stream = UnixStream::connect(daemon.socket()).unwrap();
        let ask = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        stream.write_all(ask.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    eventually("somebody waits", || metrics().lines().any(|line| line == "lastbyte_http_waits 1"));
}

#[test]
fn the_feed_goes_on_and_says_so_once() {
    let mut daemon = Daemon::start();
    let mut events = start(daemon.lastbyte(&["events"]));
    let mut stdout = BufReader::new(events.stdout.take().unwrap());
    let mut line = String::new();
    let mut until_heard = |daemon: &Daemon| {
        let id = daemon.testchild(&[], "exit 0");
        let end = &id[28..];
        while !line.contains(end) {
            line.clear();
            assert!(stdout.read_line(&mut line).unwrap() > 0, "the feed ended");
        }
    };
    until_heard(&daemon);
    kill_and_start_again(&mut daemon);
    until_heard(&daemon);
    assert_eq!(daemon.finish(&["shutdown"]).code, Some(0));
    let (stderr, code) = end_of(events);
    let want =
        format!("{RECONNECTED}lastbyte: some events were missed\nlastbyte: the server is gone\n");
    assert_eq!((stderr, code), (want, Some(125)));
}

#[test]
fn an_attached_client_goes_on_and_says_so_once() {
    let mut daemon = Daemon::start();
    let id = daemon.testchild(&[], r"print x\n then hold");
    let mut attached = start(daemon.lastbyte(&["attach", &id]));
    let mut stdout = BufReader::new(attached.stdout.take().unwrap());
    stdout.read_line(&mut String::new()).unwrap();
    kill_and_start_again(&mut daemon);
    let (stderr, code) = end_of(attached);
    let told: Vec<&str> = stderr.split_inclusive('\n').skip(1).collect();
    assert_eq!((told[0], told.len(), code), (RECONNECTED, 2, Some(125)), "{stderr}");
}

/// A proxy that keeps the answer to the first start to itself and closes the connection instead.
fn losing_an_answer(daemon: &Daemon) -> PathBuf {
    let path = daemon.fixture.home.path().join("losing");
    let (listener, server) = (UnixListener::bind(&path).unwrap(), daemon.socket());
    std::thread::spawn(move || {
        let mut loses = true;
        for client in listener.incoming() {
            let (mut client, mut server) = (client.unwrap(), UnixStream::connect(&server).unwrap());
            let mut request = vec![0; 1 << 20];
            let count = client.read(&mut request).unwrap();
            server.write_all(&request[..count]).unwrap();
            let is_start = request.starts_with(b"POST /v1/processes ");
            let mut answer = vec![0; 1 << 20];
            let count = server.read(&mut answer).unwrap();
            if is_start && std::mem::take(&mut loses) {
                continue;
            }
            // Each client asks one thing on a connection.
            client.write_all(&answer[..count]).unwrap();
        }
    });
    path
}

#[test]
fn a_start_without_a_key_that_was_cut_off_is_unknown_and_not_repeated() {
    let daemon = Daemon::start();
    let socket = losing_an_answer(&daemon);
    let finished = daemon.finish(&["start", "--socket", socket.to_str().unwrap(), "true"]);
    let told = "lastbyte: the connection broke before the server answered; whether the command was \
                started is unknown; look for it with `lastbyte ps`; a start with --key is repeated \
                safely\n";
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(123), told));
    assert_eq!(daemon.result(&["ps", "--json"]).matches("\"pid\"").count(), 1);
}

#[test]
fn a_start_with_a_key_that_was_cut_off_is_repeated() {
    let daemon = Daemon::start();
    let socket = losing_an_answer(&daemon);
    let arguments = ["start", "--socket", socket.to_str().unwrap(), "--key", "k", "true"];
    let finished = daemon.finish(&arguments);
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), RECONNECTED));
    let listed = daemon.result(&["ps", "--json"]);
    assert_eq!(listed.matches("\"pid\"").count(), 1, "{listed}");
    assert!(listed.contains(finished.stdout.trim_end()), "{listed}");
}
