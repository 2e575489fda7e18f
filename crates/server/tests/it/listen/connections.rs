use std::fs::File;
use std::io::{BufReader, Read};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use lastbyte_server::Limits;
use lastbyte_server::listen::{AcceptedTokens, Access, Token};
use lastbyte_testkit::{PATIENCE, eventually};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::fixture::{Client, Fixture};

#[test]
fn a_connection_past_the_limit_gets_an_error_and_is_closed() {
    let limits = Limits { connections: 2, reserved_connections: 0, ..Limits::default() };
    let fixture = Fixture::with_limits(limits);
    let (mut first, mut second) = (fixture.tcp(), fixture.unix());
    assert_eq!(first.get("/hello", &[]).status, 200);
    assert_eq!(second.get("/hello", &[]).status, 200);
    for _ in 0..3 {
        let mut third = fixture.tcp();
        let answer = third.get("/hello", &[]);
        assert_eq!(answer.refusal(), (503, "too_many_connections".into()));
        assert!(answer.body.contains("connection limit reached (2)"), "{answer:?}");
        assert_eq!(third.rest(), "");
    }
    assert_eq!(first.get("/hello", &[]).status, 200, "those that are there go on");
    drop(first);
    eventually("its place is free", || fixture.tcp().get("/hello", &[]).status == 200);
}

#[test]
fn idle_connections_are_closed_for_new_ones() {
    let fixture = Fixture::with_limits(Limits { connections: 4, ..Limits::default() });
    let mut asks = fixture.tcp();
    assert_eq!(asks.get("/hello", &[]).status, 200);
    let silent: Vec<_> = (0..20).map(|_| fixture.tcp()).collect();
    for _ in 0..5 {
        assert_eq!(fixture.tcp().get("/hello", &[]).status, 200);
        assert_eq!(fixture.unix().get("/hello", &[]).status, 200);
    }
    assert_eq!(asks.get("/hello", &[]).status, 200, "one that has asked keeps its place");
    for client in silent.into_iter().take(17) {
        assert_eq!(client.rest(), "", "those that came first had to go");
    }
}

#[test]
fn requests_without_a_token_do_not_protect_a_connection() {
    let state = tempfile::tempdir().unwrap();
    let token = Token::read_or_create(state.path()).unwrap();
    let limits = Limits { connections: 2, ..Limits::default() };
    let fixture = Fixture::with(limits, Access::Token(Arc::new(AcceptedTokens::new(token))));
    let mut strangers: Vec<_> = (0..2).map(|_| fixture.tcp()).collect();
    for stranger in &mut strangers {
        assert_eq!(stranger.get("/healthz", &[]).status, 200);
        assert_eq!(stranger.get("/hello", &[]).status, 401);
    }
    let text = std::fs::read_to_string(Token::file_in(state.path())).unwrap();
    let field = format!("Authorization: Bearer {}", text.trim());
    let mut known: Vec<_> = (0..2).map(|_| fixture.tcp()).collect();
    for known in &mut known {
        assert_eq!(known.get("/hello", &[&field]).status, 200);
    }
    for stranger in strangers {
        assert_eq!(stranger.rest(), "");
    }
}

#[test]
fn the_unix_socket_has_reserved_connections() {
    let limits = Limits { connections: 2, reserved_connections: 1, ..Limits::default() };
    let fixture = Fixture::with_limits(limits);
    let mut held: Vec<_> = (0..2).map(|_| fixture.tcp()).collect();
    for client in &mut held {
        client.send("GET /held HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }
    fixture.wait_until_entered(2);
    assert_eq!(fixture.tcp().get("/hello", &[]).status, 503);
    let mut own = fixture.unix();
    assert_eq!(own.get("/hello", &[]).status, 200);
    let answer = fixture.unix().get("/hello", &[]);
    assert_eq!(answer.refusal(), (503, "too_many_connections".into()));
    assert!(answer.body.contains("connection limit reached (3)"), "{answer:?}");
}

#[test]
fn refused_clients_that_stay_connected_block_nobody() {
    let lingering_close = Duration::from_millis(100);
    let limits = Limits { connections: 1, lingering_close, ..Limits::default() };
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
fn a_connection_can_be_reused() {
    let fixture = Fixture::new();
    let mut client = fixture.tcp();
    for _ in 0..3 {
        assert_eq!(client.get("/hello", &[]).body, "hello");
    }
    assert_eq!(client.get("/hello", &["Connection: close"]).body, "hello");
    assert_eq!(client.rest(), "");
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let fixture = Fixture::new();
    let mut client = fixture.unix();
    let get = |path| format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    client.send(&[get("/hello"), get("/nothing"), get("/healthz")].concat());
    let answers: Vec<_> = (0..3).map(|_| client.answer()).collect();
    let got: Vec<_> = answers.iter().map(|answer| (answer.status, answer.body.as_str())).collect();
    assert_eq!(got, [(200, "hello"), (404, ""), (200, "well")]);
}

#[test]
fn an_upgraded_connection_still_counts() {
    let fixture = Fixture::with_limits(Limits { connections: 1, ..Limits::default() });
    let mut client = fixture.tcp();
    let fields = ["Connection: upgrade", "Upgrade: echo"];
    assert_eq!(client.get("/upgrade", &fields).status, 101);
    assert_eq!(fixture.tcp().get("/hello", &[]).status, 503);
    client.send("!");
    assert_eq!(client.rest(), "!");
    eventually("its place is free", || fixture.tcp().get("/hello", &[]).status == 200);
}

/// The CPU time of this program, in ticks of 10 ms.
fn processor_ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let after_name = stat.rsplit_once(") ").unwrap().1;
    let user_and_system = after_name.split(' ').skip(11).take(2);
    user_and_system.map(|ticks| ticks.parse::<u64>().unwrap()).sum()
}

/// Takes all descriptors, and frees them when dropped.
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
fn a_server_without_descriptors_waits_and_recovers() {
    let fixture = Fixture::new();
    let mut there = fixture.tcp();
    assert_eq!(there.get("/hello", &[]).status, 200);
    let before = processor_ticks();
    let mut hog = Hog::take_all();
    // One for our end of a connection, and none for the server's.
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

/// The server has a descriptor for the connection, but none to check its peer.
#[test]
fn a_peer_that_cannot_be_checked_is_refused_with_the_reason() {
    let fixture = Fixture::new();
    assert_eq!(fixture.unix().get("/hello", &[]).status, 200);
    let mut told = 0;
    // Two for the ends of the connection.
    for free in 2..6 {
        let mut hog = Hog::take_all();
        hog.0.truncate(hog.0.len() - free);
        let mut client = fixture.unix();
        let answer = client.get("/hello", &[]);
        drop(hog);
        if answer.status != 200 {
            told += 1;
            assert_eq!(answer.refusal(), (503, "too_many_connections".into()));
            assert!(answer.body.contains("Too many open files"), "{answer:?}");
            assert_eq!(client.rest(), "", "it is not to be asked on this connection again");
        }
        assert_eq!(fixture.unix().get("/hello", &[]).status, 200, "there is room again");
    }
    assert!(told > 0, "descriptors never ran out");
}

#[test]
fn a_client_that_is_sending_its_first_body_is_not_closed() {
    let fixture = Fixture::with_limits(Limits { connections: 3, ..Limits::default() });
    let mut slow = fixture.tcp();
    let fields = "Host: localhost\r\nContent-Length: 10\r\nExpect: 100-continue\r\n";
    slow.send(&format!("POST /length HTTP/1.1\r\n{fields}\r\n"));
    // The server sends this when it reads the body.
    assert!(slow.head().starts_with("HTTP/1.1 100 "));
    slow.send("12345");
    let mut waits = fixture.tcp();
    waits.send("GET /held HTTP/1.1\r\nHost: localhost\r\n\r\n");
    fixture.wait_until_entered(1);
    let _silent: Vec<_> = (0..20).map(|_| fixture.tcp()).collect();
    for _ in 0..5 {
        eventually("a silent one gives way", || fixture.tcp().get("/hello", &[]).status == 200);
    }
    slow.send("67890");
    let answer = slow.answer();
    assert_eq!((answer.status, answer.body.as_str()), (200, "10"));
}
