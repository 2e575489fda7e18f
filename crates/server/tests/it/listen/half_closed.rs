//! Clients that close their sending side after the request, as `nc -N` does.

use std::net::Shutdown;
use std::time::Duration;

use lastbyte_server::Limits;
use lastbyte_testkit::eventually;
use rustix::net::sockopt::set_socket_linger;

use super::fixture::{Fixture, LARGE};

const HELD: &str = "GET /held HTTP/1.1\r\nHost: localhost\r\n\r\n";

#[test]
fn a_half_closed_client_is_answered() {
    let fixture = Fixture::new();
    let (mut tcp, mut unix) = (fixture.tcp(), fixture.unix());
    tcp.send(HELD);
    unix.send(HELD);
    tcp.0.get_ref().shutdown(Shutdown::Write).unwrap();
    unix.0.get_ref().shutdown(Shutdown::Write).unwrap();
    fixture.wait_until_entered(2);
    // Long enough for the server to see it and to check the peer.
    std::thread::park_timeout(Duration::from_secs(2));
    fixture.let_go.add_permits(2);
    assert_eq!(tcp.answer().body, "let go");
    assert_eq!(unix.answer().body, "let go");
    assert_eq!(tcp.rest() + &unix.rest(), "", "and then it is over");
}

#[test]
fn a_half_closed_client_gets_a_complete_large_answer() {
    let fixture = Fixture::new();
    let mut client = fixture.tcp();
    client.send("POST /length HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n12345");
    client.0.get_ref().shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.answer().body, "5");
    let mut client = fixture.tcp();
    client.send("GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n");
    client.0.get_ref().shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.answer().body.len(), LARGE);
}

#[test]
fn half_a_request_is_refused() {
    let fixture = Fixture::new();
    let mut client = fixture.tcp();
    client.send("POST /length HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n1234");
    client.0.get_ref().shutdown(Shutdown::Write).unwrap();
    assert_ne!(client.rest().split(' ').nth(1), Some("200"));
}

/// A server that accepts one connection.
fn one_place() -> Fixture {
    Fixture::with_limits(Limits { connections: 1, reserved_connections: 0, ..Limits::default() })
}

#[test]
fn a_disconnect_from_the_unix_socket_is_noticed_during_a_request() {
    let fixture = one_place();
    let mut client = fixture.unix();
    client.send(HELD);
    fixture.wait_until_entered(1);
    drop(client);
    eventually("its place is free", || fixture.unix().get("/hello", &[]).status == 200);
}

/// With a reset: after an orderly close the kernel probes the client for a minute.
#[test]
fn a_disconnect_from_tcp_is_noticed_during_a_request() {
    let fixture = one_place();
    let mut client = fixture.tcp();
    client.send(HELD);
    client.0.get_ref().shutdown(Shutdown::Write).unwrap();
    fixture.wait_until_entered(1);
    set_socket_linger(client.0.get_ref(), Some(Duration::ZERO)).unwrap();
    drop(client);
    eventually("its place is free", || fixture.tcp().get("/hello", &[]).status == 200);
}
