use std::os::unix::net::UnixStream;
use std::time::Duration;

use lastbyte_server::Limits;
use lastbyte_testkit::eventually;

use super::fixture::Fixture;

const GET_HELD: &str = "GET /held HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// A server that keeps idle connections for longer than any test.
fn patient(connections: usize) -> Fixture {
    let head_time = Duration::from_secs(3600);
    Fixture::with_limits(Limits { connections, head_time, ..Limits::default() })
}

fn shut_down(fixture: &mut Fixture) {
    fixture.shutdown.take().unwrap().send(()).unwrap();
}

#[test]
fn requests_in_progress_are_answered_and_new_connections_refused() {
    let mut fixture = Fixture::new();
    let mut client = fixture.tcp();
    client.send(GET_HELD);
    fixture.wait_until_entered(1);
    shut_down(&mut fixture);
    eventually("the socket is removed", || !fixture.socket().exists());
    assert!(UnixStream::connect(fixture.socket()).is_err());
    fixture.let_go.add_permits(1);
    let answer = client.answer();
    assert_eq!((answer.status, answer.body.as_str()), (200, "let go"));
    assert_eq!(client.rest(), "");
    fixture.wait_until_gone();
}

#[test]
fn idle_connections_are_closed() {
    let mut fixture = patient(2);
    let (mut used, unused) = (fixture.tcp(), fixture.unix());
    assert_eq!(used.get("/hello", &[]).status, 200);
    shut_down(&mut fixture);
    assert_eq!(used.rest(), "");
    assert_eq!(unused.rest(), "");
    fixture.wait_until_gone();
}

#[test]
fn a_request_that_takes_too_long_is_cut_off() {
    let mut fixture = Fixture::new();
    let mut client = fixture.tcp();
    client.send(GET_HELD);
    fixture.wait_until_entered(1);
    shut_down(&mut fixture);
    eventually("the socket is removed", || !fixture.socket().exists());
    fixture.cut.take().unwrap().send(()).unwrap();
    fixture.wait_until_gone();
    assert_eq!(client.rest(), "");
}

#[test]
fn a_client_that_stays_connected_does_not_delay_it() {
    let mut fixture = patient(1);
    let mut idle = fixture.tcp();
    assert_eq!(idle.get("/hello", &[]).status, 200);
    let turned_away = fixture.tcp();
    shut_down(&mut fixture);
    fixture.wait_until_gone();
    drop((idle, turned_away));
}
