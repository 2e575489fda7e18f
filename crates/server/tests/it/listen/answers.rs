use lastbyte_server::Limits;
use lastbyte_testkit::eventually;

use super::fixture::{Fixture, LARGE};

#[test]
fn unread_answers_are_limited_and_the_error_names_the_limit() {
    let fixture = Fixture::with_limits(Limits { answers_bytes: LARGE, ..Limits::default() });
    let mut stuck = fixture.tcp();
    stuck.send("GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(stuck.head().starts_with("HTTP/1.1 200"));
    let mut client = fixture.tcp();
    let answer = client.get("/large", &[]);
    assert_ne!(answer.status, 200);
    assert_eq!(answer.refusal(), (503, "too_many_answers".into()));
    assert!(answer.body.contains(&format!("may take {LARGE} bytes in all")), "{answer:?}");
    assert_eq!(client.get("/hello", &[]).status, 200, "a small answer needs no room");
    drop(stuck);
    eventually("there is room again", || fixture.unix().get("/large", &[]).status == 200);
}
