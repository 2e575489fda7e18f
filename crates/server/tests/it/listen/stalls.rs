use std::io::Read;
use std::time::{Duration, Instant};

use lastbyte_server::listen::Limits;
use lastbyte_testkit::eventually;

use super::fixture::{Client, Fixture, LARGE, SOON};

const GET_LARGE: &str = "GET /large HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

fn fixture(stall: Duration) -> Fixture {
    Fixture::with_limits(Limits { stall, connections: 1, ..Limits::default() })
}

/// Asks for much and reads none of it until the server has given up on this connection, the only
/// one it takes.
fn is_cut<S: Read + std::io::Write>(fixture: &Fixture, mut client: Client<S>) {
    client.send(GET_LARGE);
    assert!(client.head().starts_with("HTTP/1.1 200"));
    eventually("the place of the one who does not read is free", || {
        fixture.tcp().get("/hello", &[]).status == 200
    });
    assert!(client.rest().len() < LARGE);
}

#[test]
fn a_client_that_takes_nothing_of_its_answer_is_cut() {
    let fixture = fixture(SOON);
    is_cut(&fixture, fixture.tcp());
}

#[test]
fn a_client_of_the_socket_that_takes_nothing_of_its_answer_is_cut() {
    let fixture = fixture(SOON);
    is_cut(&fixture, fixture.unix());
}

/// Reads the whole answer, at first so slowly that the kernel has no room for more in a limit.
fn is_not_cut<S: Read + std::io::Write>(mut client: Client<S>, stall: Duration) {
    client.send(GET_LARGE);
    assert!(client.head().starts_with("HTTP/1.1 200"));
    let (began, mut length) = (Instant::now(), 0);
    let mut piece = vec![0; 256 << 10];
    while length < LARGE {
        let count = client.0.read(&mut piece).unwrap();
        assert_ne!(count, 0, "cut after {length} bytes and {:?}", began.elapsed());
        length += count;
        if began.elapsed() < stall * 8 {
            std::thread::park_timeout(stall / 4);
        }
    }
    assert!(began.elapsed() >= stall * 8, "{:?}", began.elapsed());
}

#[test]
fn a_slow_client_that_reads_is_not_cut() {
    is_not_cut(fixture(SOON).tcp(), SOON);
}

#[test]
fn a_slow_client_of_the_socket_that_reads_is_not_cut() {
    is_not_cut(fixture(SOON).unix(), SOON);
}

#[test]
fn the_time_that_an_answer_takes_to_be_made_is_not_counted() {
    let fixture = fixture(SOON);
    let mut client = fixture.tcp();
    client.send("GET /held HTTP/1.1\r\nHost: localhost\r\n\r\n");
    fixture.wait_until_entered(1);
    std::thread::park_timeout(SOON * 3);
    fixture.let_go.add_permits(1);
    assert_eq!(client.answer().body, "let go");
}
