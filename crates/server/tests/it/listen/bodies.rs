use std::io::Write;

use lastbyte_server::Limits;

use super::fixture::{Answer, Client, Fixture, SOON};

const POST: &str = "POST /length HTTP/1.1\r\nHost: localhost\r\n";

fn begin<S: std::io::Read + Write>(client: &mut Client<S>, fields: &str) {
    client.send(&format!("{POST}{fields}\r\n\r\n"));
}

/// The peak memory of this program, in bytes.
fn peak_memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<usize>().unwrap() << 10
}

#[test]
fn a_body_announced_as_too_large_is_refused_at_once() {
    let fixture = Fixture::new();
    let mut client = fixture.tcp();
    begin(&mut client, "Content-Length: 104857600");
    let answer = client.answer();
    assert_eq!(answer.refusal(), (413, "body_too_large".into()));
    assert!(answer.body.contains("16777216"), "{answer:?}");
}

/// Sends a hundred megabytes completely, then reads the answer.
fn send_all_then_read<S: std::io::Read + Write>(mut client: Client<S>, fields: &str) -> Answer {
    begin(&mut client, fields);
    let mib = vec![b'x'; 1 << 20];
    for _ in 0..100 {
        client.send("100000\r\n"); // the length of a chunk, or part of the body
        client.0.get_mut().write_all(&mib).unwrap();
        client.send("\r\n");
    }
    client.answer()
}

#[test]
fn a_client_that_sends_a_hundred_megabytes_gets_the_error() {
    let fixture = Fixture::new();
    let before = peak_memory();
    for fields in ["Content-Length: 104858600", "Transfer-Encoding: chunked"] {
        let want = (413, "body_too_large".into());
        assert_eq!(send_all_then_read(fixture.tcp(), fields).refusal(), want, "{fields}");
        assert_eq!(send_all_then_read(fixture.unix(), fields).refusal(), want, "{fields}");
    }
    // A few bodies up to their limit, but none of them complete.
    let grown = peak_memory() - before;
    assert!(grown < 80 << 20, "{grown} bytes more");
}

#[test]
fn a_body_in_chunks_of_a_byte_takes_no_more_memory() {
    let fixture = Fixture::new();
    let mut client = fixture.tcp();
    begin(&mut client, "Transfer-Encoding: chunked");
    let before = peak_memory();
    let chunks = b"1\r\nx\r\n".repeat(1 << 16);
    for _ in 0..16 {
        client.0.get_mut().write_all(&chunks).unwrap();
    }
    client.send("0\r\n\r\n");
    assert_eq!(client.answer().body, (1 << 20).to_string());
    let grown = peak_memory() - before;
    assert!(grown < 16 << 20, "{grown} bytes more");
}

#[test]
fn a_body_up_to_the_limit_is_accepted() {
    let fixture = Fixture::with_limits(Limits { body_bytes: 5, ..Limits::default() });
    let mut client = fixture.unix();
    begin(&mut client, "Content-Length: 5");
    client.send("12345");
    assert_eq!(client.answer().body, "5");
    begin(&mut client, "Transfer-Encoding: chunked");
    client.send("2\r\n12\r\n3\r\n345\r\n0\r\n\r\n");
    assert_eq!(client.answer().body, "5");
    begin(&mut client, "Transfer-Encoding: chunked");
    client.send("2\r\n12\r\n4\r\n3456\r\n");
    assert_eq!(client.answer().refusal(), (413, "body_too_large".into()));
    assert_eq!(client.rest(), "", "what is left of it is not taken for a request");
}

#[test]
fn a_body_that_does_not_arrive_times_out() {
    let fixture = Fixture::with_limits(Limits { body_time: SOON, ..Limits::default() });
    let mut client = fixture.tcp();
    begin(&mut client, "Content-Length: 5");
    client.send("1234");
    assert_eq!(client.answer().refusal(), (408, "request_too_slow".into()));
}

#[test]
fn expect_100_continue_is_answered() {
    let fixture = Fixture::new();
    let mut client = fixture.tcp();
    begin(&mut client, "Content-Length: 5\r\nExpect: 100-continue");
    assert_eq!(client.head(), "HTTP/1.1 100 Continue\r\n\r\n");
    client.send("12345");
    assert_eq!(client.answer().body, "5");
    begin(&mut client, "Content-Length: 99999999\r\nExpect: 100-continue");
    assert_eq!(client.answer().refusal(), (413, "body_too_large".into()));
}
