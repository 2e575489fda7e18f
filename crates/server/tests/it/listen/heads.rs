use std::io::Write;
use std::time::Instant;

use lastbyte_server::Limits;

use super::fixture::{Fixture, SOON};

#[test]
fn a_slow_head_is_cut_off_at_its_time_limit() {
    let fixture = Fixture::with_limits(Limits { head_time: SOON, ..Limits::default() });
    let mut slow = fixture.tcp();
    slow.send("GET /hello HTTP/1.1\r\n");
    let began = Instant::now();
    let fields = std::iter::repeat("X: y\r\n").map(str::as_bytes);
    for byte in fields.flatten() {
        // Fails once the server has closed it.
        if slow.0.get_mut().write_all(&[*byte]).is_err() {
            break;
        }
        std::thread::park_timeout(SOON / 20);
    }
    assert!(began.elapsed() >= SOON, "{:?}", began.elapsed());
}

#[test]
fn a_silent_connection_is_closed_at_the_same_limit() {
    let fixture = Fixture::with_limits(Limits { head_time: SOON, ..Limits::default() });
    let began = Instant::now();
    assert_eq!(fixture.tcp().rest(), "");
    assert!(began.elapsed() >= SOON);
}

#[test]
fn ten_thousand_fields_are_refused() {
    let fixture = Fixture::new();
    let mut client = fixture.tcp();
    let fields: String = (0..10_000).map(|n| format!("x{n}: y\r\n")).collect();
    // The server may close it while this is being sent.
    let request = format!("GET /hello HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n");
    _ = client.0.get_mut().write_all(request.as_bytes());
    assert_eq!(client.answer().status, 431);
    assert_eq!(fixture.tcp().get("/hello", &[]).body, "hello");
}

#[test]
fn a_hundred_fields_are_accepted_and_one_more_is_not() {
    let fixture = Fixture::new();
    let fields: Vec<String> = (0..99).map(|n| format!("x{n}: y")).collect();
    let mut fields: Vec<&str> = fields.iter().map(String::as_str).collect();
    assert_eq!(fixture.tcp().get("/hello", &fields).status, 200);
    fields.push("one: more");
    assert_eq!(fixture.tcp().get("/hello", &fields).status, 431);
}

#[test]
fn a_head_past_its_size_limit_is_refused() {
    let fixture = Fixture::new();
    let most = Limits::default().head_bytes;
    let field = |length| format!("x: {}", "y".repeat(length));
    assert_eq!(fixture.tcp().get("/hello", &[&field(most - 100)]).status, 200);
    assert_eq!(fixture.tcp().get("/hello", &[&field(most)]).status, 431);
}

#[test]
fn bad_escapes_do_no_harm() {
    let fixture = Fixture::new();
    let mut client = fixture.tcp();
    for path in ["/%", "/%zz", "/%ff%fe", "/hello%00", "/%2e%2e/%2e%2e", "/hello?%=%zz&%"] {
        let answer = client.get(path, &[]);
        assert!(matches!(answer.status, 200 | 400 | 404), "{path}: {answer:?}");
    }
    assert_eq!(client.get("/hello", &[]).body, "hello");
}

#[test]
fn bytes_that_are_not_http_are_refused() {
    let fixture = Fixture::new();
    for text in ["\x16\x03\x01\x02\x00\x01\r\n\r\n", "GET /hello\r\n\r\n", "GET / HTTP/9.9\r\n\r\n"]
    {
        let mut client = fixture.tcp();
        client.send(text);
        assert!(client.rest().starts_with("HTTP/1.1 400 "), "{text:?}");
    }
    assert_eq!(fixture.tcp().get("/hello", &[]).body, "hello");
}
