use std::fs::File;
use std::io::{BufReader, Read};
use std::net::TcpStream;
use std::time::Duration;

use lastbyte_server::Limits;
use lastbyte_testkit::{PATIENCE, eventually};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::fixture::{Client, Fixture};

#[test]
fn one_connection_past_the_bound_is_told_so_and_closed() {
    let fixture = Fixture::with_limits(Limits { connections: 2, ..Limits::default() });
    let (mut first, mut second) = (fixture.tcp(), fixture.unix());
    assert_eq!(first.get("/hello", &[]).status, 200);
    assert_eq!(second.get("/hello", &[]).status, 200);
    for _ in 0..3 {
        let mut third = fixture.tcp();
        let answer = third.get("/hello", &[]);
        assert_eq!(answer.refusal(), (503, "too_many_connections".into()));
        assert!(answer.body.contains("there are 2 connections"), "{answer:?}");
        assert_eq!(third.rest(), "");
    }
    assert_eq!(first.get("/hello", &[]).status, 200, "those that are there go on");
    drop(first);
    eventually("its place is free", || fixture.tcp().get("/hello", &[]).status == 200);
}

#[test]
fn nobody_is_kept_out_by_clients_that_were_turned_away_and_stay() {
    let linger = Duration::from_millis(100);
    let limits = Limits { connections: 1, linger, ..Limits::default() };
    let fixture = Fixture::with_limits(limits);
    let mut first = fixture.tcp();
    assert_eq!(first.get("/hello", &[]).status, 200);
    let silent: Vec<_> = (0..200).map(|_| fixture.tcp()).collect();
    for client in silent {
        assert_eq!(client.rest(), "", "it said nothing and is let go");
    }
    assert_eq!(fixture.tcp().get("/hello", &[]).status, 503);
    drop(first);
    eventually("its place is free", || fixture.tcp().get("/hello", &[]).status == 200);
}

#[test]
fn a_connection_is_used_again() {
    let fixture = Fixture::new();
    let mut client = fixture.tcp();
    for _ in 0..3 {
        assert_eq!(client.get("/hello", &[]).body, "hello");
    }
    assert_eq!(client.get("/hello", &["Connection: close"]).body, "hello");
    assert_eq!(client.rest(), "");
}

#[test]
fn requests_that_come_at_once_are_answered_in_their_order() {
    let fixture = Fixture::new();
    let mut client = fixture.unix();
    let get = |path| format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    client.send(&[get("/hello"), get("/nothing"), get("/healthz")].concat());
    let answers: Vec<_> = (0..3).map(|_| client.answer()).collect();
    let got: Vec<_> = answers.iter().map(|answer| (answer.status, answer.body.as_str())).collect();
    assert_eq!(got, [(200, "hello"), (404, ""), (200, "well")]);
}

#[test]
fn a_connection_that_becomes_something_else_keeps_its_place() {
    let fixture = Fixture::with_limits(Limits { connections: 1, ..Limits::default() });
    let mut client = fixture.tcp();
    let fields = ["Connection: upgrade", "Upgrade: echo"];
    assert_eq!(client.get("/upgrade", &fields).status, 101);
    assert_eq!(fixture.tcp().get("/hello", &[]).status, 503);
    client.send("!");
    assert_eq!(client.rest(), "!");
    eventually("its place is free", || fixture.tcp().get("/hello", &[]).status == 200);
}

/// How much processor time this program has used, in ticks of 10 ms.
fn processor_ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let after_name = stat.rsplit_once(") ").unwrap().1;
    let user_and_system = after_name.split(' ').skip(11).take(2);
    user_and_system.map(|ticks| ticks.parse::<u64>().unwrap()).sum()
}

/// Takes every descriptor there is, and gives them back when dropped.
struct Hog(Vec<File>, Rlimit);

impl Hog {
    fn take_all() -> Self {
        let before = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: Some(256), ..before }).unwrap();
        Self(std::iter::from_fn(|| File::open("/dev/null").ok()).collect(), before)
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        setrlimit(Resource::Nofile, self.1).unwrap();
    }
}

#[test]
fn a_server_without_descriptors_rests_and_goes_on() {
    let fixture = Fixture::new();
    let mut there = fixture.tcp();
    assert_eq!(there.get("/hello", &[]).status, 200);
    let before = processor_ticks();
    let mut hog = Hog::take_all();
    // One for our end of a connection; there is none left for the server's.
    drop(hog.0.pop());
    let stream = TcpStream::connect(fixture.address).unwrap();
    let mut waiting = Client(BufReader::new(stream));
    waiting.send("GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
    waiting.0.get_ref().set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    assert!(waiting.0.read(&mut [0]).is_err(), "nobody can answer yet");
    assert_eq!(there.get("/hello", &[]).status, 200, "those that are there go on");
    drop(hog);
    let used = processor_ticks() - before;
    assert!(used < 40, "it did not rest: {used} ticks of a second's hundred");
    waiting.0.get_ref().set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(waiting.answer().body, "hello");
}
