use std::io::Read;
use std::time::{Duration, Instant};

use lastbyte_server::Limits;
use lastbyte_testkit::eventually;
use rustix::net::sockopt::set_socket_recv_buffer_size;

use super::fixture::{Client, Fixture, LARGE, SOON};

const GET_LARGE: &str = "GET /large HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

fn fixture(stall: Duration) -> Fixture {
    Fixture::with_limits(Limits { stall, connections: 1, ..Limits::default() })
}

/// Requests a large answer and reads nothing until the server has closed this connection, the only
/// one it accepts.
fn is_cut<S: Read + std::io::Write>(fixture: &Fixture, mut client: Client<S>) {
    client.send(GET_LARGE);
    assert!(client.head().starts_with("HTTP/1.1 200"));
    eventually("the place of the one who does not read is free", || {
        fixture.tcp().get("/hello", &[]).status == 200
    });
    assert!(client.rest().len() < LARGE);
}

#[test]
fn a_tcp_client_that_does_not_read_is_closed() {
    let fixture = fixture(SOON);
    is_cut(&fixture, fixture.tcp());
}

#[test]
fn a_unix_client_that_does_not_read_is_closed() {
    let fixture = fixture(SOON);
    is_cut(&fixture, fixture.unix());
}

/// Many times as long as the pauses of a slow client in these tests.
const LIMIT: Duration = Duration::from_secs(2);

/// Reads the whole answer, for the time of two limits in pieces so small that within one limit the
/// kernel accepts no more.
fn is_not_cut<S: Read + std::io::Write>(mut client: Client<S>, piece: usize) {
    client.send(GET_LARGE);
    assert!(client.head().starts_with("HTTP/1.1 200"));
    let (began, mut length) = (Instant::now(), 0);
    let mut bytes = vec![0; 1 << 20];
    while length < LARGE {
        let slowly = began.elapsed() < LIMIT * 2;
        let most = if slowly { piece } else { bytes.len() };
        let count = client.0.read(&mut bytes[..most]).unwrap();
        assert_ne!(count, 0, "cut after {length} bytes and {:?}", began.elapsed());
        length += count;
        if slowly {
            std::thread::park_timeout(LIMIT / 20);
        }
    }
}

#[test]
fn a_slow_tcp_client_is_not_closed() {
    let fixture = fixture(LIMIT);
    let client = fixture.tcp();
    // The kernel reports new buffer space to the sender only in large steps.
    set_socket_recv_buffer_size(client.0.get_ref(), 64 << 10).unwrap();
    is_not_cut(client, 16 << 10);
}

#[test]
fn a_slow_unix_client_is_not_closed() {
    let fixture = fixture(LIMIT);
    is_not_cut(fixture.unix(), 4 << 10);
}

#[test]
fn the_time_until_the_answer_does_not_count() {
    let fixture = fixture(SOON);
    let mut client = fixture.tcp();
    client.send("GET /held HTTP/1.1\r\nHost: localhost\r\n\r\n");
    fixture.wait_until_entered(1);
    std::thread::park_timeout(SOON * 3);
    fixture.let_go.add_permits(1);
    assert_eq!(client.answer().body, "let go");
}
