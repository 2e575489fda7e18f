//! Whatever a client sends, nothing crashes, hangs or leaks, and every request that can be
//! parsed is answered once.

use std::collections::BTreeMap;
use std::future::pending;
use std::time::{Duration, Instant};

use lastbyte_server::Limits;
use lastbyte_testkit::{PATIENCE, children_of, open_fds};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::client::Client;
use super::fixture::{Fixture, child, patiently, result, run};
use super::transport::{Transport, listen};
use crate::random::Random;

#[tokio::test(flavor = "multi_thread")]
async fn no_line_can_do_harm() {
    fuzz(Transport::Lines).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_websocket_message_can_do_harm() {
    fuzz(Transport::Tcp).await;
}

/// One round, or as many as there is time for. The seed of each is printed first.
#[expect(clippy::print_stderr, reason = "seen only when the test fails")]
async fn fuzz(transport: Transport) {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let mut seed = number("LASTBYTE_TEST_FUZZ_SEED").unwrap_or(0x9E37_79B9_7F4A_7C15);
    let time = number("LASTBYTE_TEST_FUZZ_SECONDS").unwrap_or(0);
    let until = Instant::now() + Duration::from_secs(time);
    // Things that are created once exist before anything is counted.
    round(transport, seed, 20).await;
    loop {
        eprintln!("LASTBYTE_TEST_FUZZ_SEED={seed} begins with this round over {transport:?}");
        let before = InUse::now();
        round(transport, seed, 400).await;
        before.until_again().await;
        if Instant::now() >= until {
            return;
        }
        seed = Random::new(seed).below(u64::MAX);
    }
}

async fn round(transport: Transport, seed: u64, messages: i64) {
    let mut random = Random::new(seed);
    let fixture = Fixture::new();
    let mut client = transport.client(&fixture).await;
    let (mut expected, hello) = (BTreeMap::new(), client.got.len());
    for number in 0..messages {
        let message = message(&mut random, number, messages);
        if let Some(id) = id_of_request(&message) {
            *expected.entry(id).or_insert(0) += 1;
        }
        client.send_line(&message);
    }
    if transport == Transport::Tcp {
        send_broken_frames(&fixture, &mut random).await;
    }
    let count: usize = expected.values().sum();
    let answers = |got: &[Value]| got[hello..].iter().filter_map(answered).collect::<Vec<_>>();
    client.until("every answer", |got| (answers(got).len() >= count).then_some(())).await;
    let mut given = BTreeMap::new();
    answers(&client.got).into_iter().for_each(|id| *given.entry(id).or_insert(0) += 1);
    assert_eq!(given, expected);
    is_served(&mut client).await;
    client.close();
    client.until_closed().await;
    patiently("the door closes", fixture.door.close()).await;
}

/// With an id that no corrupted message can have.
async fn is_served(client: &mut Client) {
    let id = "still alive?";
    client
        .send(&json!({"id": id, "method": "command/exec", "params": run("print yes", json!({}))}));
    let answer = |got: &[Value]| got.iter().find(|message| message["id"] == id).cloned();
    assert_eq!(result(&client.until("an answer", answer).await), (0, "yes", ""));
}

/// A message that a client might send. The largest is sent once.
fn message(random: &mut Random, number: i64, of: i64) -> Vec<u8> {
    let mut message = match random.below(10) {
        _ if number == of / 2 => padded(number, &"x".repeat(20 << 20)),
        0 => bytes(random, 300),
        1 => nested(random, number),
        2 => retyped(random, number).to_string().into_bytes(),
        _ => spoiled(random, number),
    };
    // A newline would make it two messages.
    message.retain(|byte| *byte != b'\n');
    message
}

/// A request with bytes flipped, removed, doubled or inserted.
fn spoiled(random: &mut Random, number: i64) -> Vec<u8> {
    let mut line = request(random, number).to_string().into_bytes();
    (0..random.below(4)).for_each(|_| spoil(random, &mut line));
    line
}

fn spoil(random: &mut Random, line: &mut Vec<u8>) {
    let at = below(random, line.len().max(1));
    match random.below(4) {
        _ if line.is_empty() => line.push(b'{'),
        0 => line[at] ^= 1 << random.below(8),
        1 => _ = line.drain(at..(at + 1 + below(random, 9)).min(line.len())),
        2 => line.insert(at, random.below(256) as u8),
        _ => line.extend_from_within(at..),
    }
}

/// At most this many bytes.
fn bytes(random: &mut Random, most: usize) -> Vec<u8> {
    (0..below(random, most + 1)).map(|_| random.below(256) as u8).collect()
}

fn pick<'a, T>(random: &mut Random, from: &'a [T]) -> &'a T {
    &from[below(random, from.len())]
}

fn below(random: &mut Random, bound: usize) -> usize {
    random.below(bound as u64) as usize
}

/// A request with a member of another type.
fn retyped(random: &mut Random, number: i64) -> Value {
    let mut request = request(random, number);
    let values = [
        json!(null),
        json!(-1),
        json!(1.5),
        json!(u64::MAX),
        json!(""),
        json!("\0"),
        json!([]),
        json!([[]]),
        json!({}),
        json!({"type": "readOnly"}),
        json!(true),
    ];
    let members =
        ["processId", "tty", "cwd", "env", "size", "timeoutMs", "outputBytesCap", "command"];
    let member = *pick(random, &members);
    request["params"][member] = pick(random, &values).clone();
    request
}

fn nested(random: &mut Random, number: i64) -> Vec<u8> {
    let depth = *pick(random, &[100, 127, 128, 129, 100_000]);
    let (open, close) = ("[".repeat(depth), "]".repeat(depth));
    let close = if random.below(2) == 0 { &close[..] } else { "" };
    format!(r#"{{"id":{number},"method":"command/exec","params":{open}{close}}}"#).into_bytes()
}

/// A request with an unknown member.
fn padded(number: i64, padding: &str) -> Vec<u8> {
    let params = run("exit 0", json!({}));
    let method = r#""method":"command/exec""#;
    format!(r#"{{"id":{number},{method},"params":{params},"padding":"{padding}"}}"#).into_bytes()
}

/// A valid request of any kind.
fn request(random: &mut Random, number: i64) -> Value {
    let (ends, reads) = (child("exit 0"), child("cat"));
    let kinds = [
        json!({"method": "command/exec", "params": {"command": reads, "processId": "a", "tty": true, "timeoutMs": 90}}),
        json!({"method": "command/exec", "params": {"command": reads, "processId": "a", "streamStdin": true, "timeoutMs": 90}}),
        json!({"method": "command/exec", "params": {"command": ends, "env": {"A": null}, "timeoutMs": 900}}),
        json!({"method": "command/exec/write", "params": {"processId": "a", "deltaBase64": "aGk="}}),
        json!({"method": "command/exec/resize", "params": {"processId": "a", "size": {"rows": 1, "cols": 2}}}),
        json!({"method": "command/exec/terminate", "params": {"processId": "a"}}),
        json!({"method": "process/spawn", "params": {"command": ends, "processHandle": "h", "cwd": "/"}}),
        json!({"method": "process/writeStdin", "params": {"processHandle": "h", "closeStdin": true}}),
        json!({"method": "process/kill", "params": {"processHandle": "h"}}),
        json!({"method": "initialize", "params": {"clientInfo": {"name": "n", "version": "0"}}}),
    ];
    let mut request = pick(random, &kinds).clone();
    request["id"] = number.into();
    request
}

/// Connections that send broken frames after the upgrade.
async fn send_broken_frames(fixture: &Fixture, random: &mut Random) {
    let address = listen(fixture, Limits::default());
    for _ in 0..5 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\
                    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAA\r\n\r\n";
        stream.write_all(&[head.as_bytes(), &bytes(random, 300)].concat()).await.unwrap();
    }
}

/// Whether this is a request, decided without the code under test.
fn id_of_request(message: &[u8]) -> Option<String> {
    let message: Value = serde_json::from_slice(message).ok()?;
    let id = message.as_object()?.get("id")?;
    let named = message.get("method").is_some_and(Value::is_string);
    (named && (id.is_i64() || id.is_string())).then(|| id.to_string())
}

fn answered(message: &Value) -> Option<String> {
    let is_answer = message.get("method").is_none();
    is_answer.then(|| message["id"].to_string())
}

/// The resources of this program at one moment.
#[derive(Debug)]
struct InUse {
    descriptors: usize,
    tasks: usize,
    children: usize,
}

impl InUse {
    fn now() -> Self {
        Self {
            descriptors: open_fds().len(),
            tasks: Handle::current().metrics().num_alive_tasks(),
            children: children_of(std::process::id()).len(),
        }
    }

    /// Waits until no more than this is in use.
    async fn until_again(&self) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let now = Self::now();
            if now.is_within(self) {
                return;
            }
            assert!(Instant::now() < deadline, "{now:?} is left of {self:?}");
            _ = timeout(Duration::from_millis(5), pending::<()>()).await;
        }
    }

    fn is_within(&self, other: &Self) -> bool {
        self.descriptors <= other.descriptors
            && self.tasks <= other.tasks
            && self.children <= other.children
    }
}
