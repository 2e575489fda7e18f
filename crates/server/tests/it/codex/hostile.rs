//! Input that no client should send: skipped or answered, and never fatal.

use serde_json::{Value, json};

use super::client::Client;
use super::fixture::{Fixture, result, run};
use super::transport::Transport;

async fn is_served(client: &mut Client) {
    let answer = client.exec(run("print alive", json!({}))).await;
    assert_eq!(result(&answer), (0, "alive", ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_that_are_no_request_are_skipped_and_what_runs_goes_on() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    client.request("command/exec", run("hold", json!({})));
    fixture.anchor.wait_for(1);
    let count = client.got.len();
    let lines: [&[u8]; 10] = [
        b"",
        b"\r",
        b"{not json",
        b"[]",
        b"\"text\"",
        b"null",
        b"{\"id\":1,\"method\":\"x\xff\"}",
        b"\xff\xfe\x00",
        b"{\"id\":null,\"method\":\"command/exec\",\"params\":{\"command\":[\"true\"]}}",
        b"{\"method\":\"no/such/notification\"}",
    ];
    lines.iter().for_each(|line| client.send_line(line));
    is_served(&mut client).await;
    assert_eq!(client.got.len(), count + 1, "{:?}", client.got);
    assert_eq!(fixture.anchor.count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_may_end_like_in_a_text_of_windows() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    let params = run("print crlf", json!({}));
    let line = json!({"id": 500, "method": "command/exec", "params": params}).to_string() + "\r";
    client.send_line(line.as_bytes());
    assert_eq!(result(&client.answer(500).await).1, "crlf");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_huge_line_is_a_request_like_any_other() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    let large = "x".repeat(22 << 20);
    client.send_line(padded(900, &large).as_bytes());
    assert_eq!(result(&client.answer(900).await).1, "ok");
    client.send_line(large.as_bytes());
    client.send_line("[".repeat(5 << 20).as_bytes());
    is_served(&mut client).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_past_all_bounds_is_thrown_away() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    let most = lastbyte_server::doors::codex::MOST_MESSAGE_BYTES;
    client.send_line(padded(1000, &"x".repeat(most)).as_bytes());
    is_served(&mut client).await;
    assert!(!client.got.iter().any(|message| message["id"] == 1000));
}

/// A request with a member that nobody knows.
fn padded(id: i64, padding: &str) -> String {
    let params = run("print ok", json!({}));
    format!(r#"{{"id":{id},"method":"command/exec","params":{params},"padding":"{padding}"}}"#)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_request_that_can_be_parsed_is_answered_among_spoiled_ones() {
    let fixture = Fixture::new();
    send_spoiled_requests(&mut fixture.client().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn over_a_websocket_spoiled_requests_do_no_harm_either() {
    let fixture = Fixture::new();
    send_spoiled_requests(&mut Transport::Tcp.client(&fixture).await).await;
}

/// Requests with bytes flipped, cut out, doubled or put in. Whatever can be parsed is answered.
async fn send_spoiled_requests(client: &mut Client) {
    let mut chance = Chance(0x9E37_79B9_7F4A_7C15);
    let seeds = [
        json!({"method": "command/exec", "params": {"command": ["true"], "processId": "a", "tty": true}}),
        json!({"method": "command/exec", "params": {"command": ["true"], "env": {"A": null}, "timeoutMs": 9}}),
        json!({"method": "command/exec/write", "params": {"processId": "a", "deltaBase64": "aGk="}}),
        json!({"method": "command/exec/resize", "params": {"processId": "a", "size": {"rows": 1, "cols": 2}}}),
        json!({"method": "process/spawn", "params": {"command": ["true"], "processHandle": "h", "cwd": "/"}}),
        json!({"method": "initialize", "params": {"clientInfo": {"name": "n", "version": "0"}}}),
    ];
    let mut expected = Vec::new();
    for number in 0..1500_i64 {
        let mut seed = seeds[chance.below(seeds.len())].clone();
        seed["id"] = (10_000 + number).into();
        let mut line = seed.to_string().into_bytes();
        (0..chance.below(4)).for_each(|_| chance.spoil(&mut line));
        line.retain(|byte| *byte != b'\n');
        if client.sends_text() {
            line = String::from_utf8_lossy(&line).into_owned().into_bytes();
        }
        expected.extend(id_of_request(&line));
        client.send_line(&line);
    }
    for id in expected {
        let what = format!("an answer to {id}");
        let is_it = |message: &Value| message.get("id") == Some(&id);
        client.until(&what, |got| got.iter().any(is_it).then_some(())).await;
    }
    is_served(client).await;
}

/// What the protocol calls a request, judged without the code under test.
fn id_of_request(line: &[u8]) -> Option<Value> {
    let message: Value = serde_json::from_slice(line).ok()?;
    let id = message.as_object()?.get("id")?;
    let named = message.get("method").is_some_and(Value::is_string);
    (named && (id.is_i64() || id.is_string())).then(|| id.clone())
}

/// The same numbers in every run, so that what failed fails again.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }

    fn spoil(&mut self, line: &mut Vec<u8>) {
        let at = self.below(line.len().max(1)).min(line.len().saturating_sub(1));
        match self.below(4) {
            _ if line.is_empty() => line.push(b'{'),
            0 => line[at] ^= 1 << self.below(8),
            1 => _ = line.drain(at..(at + 1 + self.below(9)).min(line.len())),
            2 => line.insert(at, self.below(256) as u8),
            _ => line.extend_from_within(at..),
        }
    }
}
