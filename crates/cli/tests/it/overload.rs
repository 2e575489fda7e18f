//! Greedy clients of a real daemon: its memory stays small, and it keeps running.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use lastbyte_testkit::{PATIENCE, eventually};
use rustix::net::sockopt::set_socket_recv_buffer_size;
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::{Value, json};

use crate::bare_daemon::{Daemon, serve};
use crate::harness::{Fixture, worker_of};

const MIB: u64 = 1 << 20;
const UPGRADE: &str = "Connection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                       Sec-WebSocket-Key: bGFzdGJ5dGUgaXMgaGVyZQ==\r\n";

/// A daemon on a port that needs no token.
struct Server {
    daemon: Daemon,
    address: String,
    _fixture: Fixture,
}

impl Server {
    fn start() -> Self {
        let fixture = Fixture::new();
        let arguments = ["--no-auth", "--listen", "127.0.0.1:0", "--log", "off"];
        let mut daemon = Daemon::start(serve(&fixture, &arguments));
        daemon.address();
        let address = daemon.address().strip_prefix("http://").unwrap().to_owned();
        Self { daemon, address, _fixture: fixture }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends a request and does not read the answer.
    fn ask(&self, method: &str, path: &str, fields: &str, body: &str) -> TcpStream {
        let mut stream = self.connect();
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n{fields}\r\n{body}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    /// The status and the body of an answer.
    fn answer(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let mut stream = self.ask(method, path, "Connection: close\r\n", body);
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{text:?}"));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap())
    }

    /// Starts a process; returns its path in the API.
    fn run(&self, shell: &str, wait: Value) -> String {
        let body = json!({ "shell": shell, "stdin": "open", "wait": wait }).to_string();
        let (status, answer) = self.answer("POST", "/v1/processes", &body);
        assert_eq!(status, 201, "{answer}");
        format!("/v1/processes/{}", answer["process"]["id"].as_str().unwrap())
    }

    /// How many bytes of input a process has accepted.
    fn accepted(&self, path: &str) -> u64 {
        let (status, answer) = self.answer("POST", &format!("{path}/stdin"), "");
        assert_eq!(status, 200, "{answer}");
        answer["accepted"].as_u64().unwrap()
    }

    /// A value of `/proc/PID/status`, in bytes.
    fn bytes(&self, name: &str) -> u64 {
        let status =
            fs::read_to_string(format!("/proc/{}/status", worker_of(&self.daemon.child))).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim_start_matches(':').trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
    }

    fn memory(&self) -> u64 {
        self.bytes("VmRSS")
    }
}

/// Sends pings until the server takes no more, and reads nothing. Returns how many bytes it took.
fn ping_without_reading(mut stream: &TcpStream) -> u64 {
    let ping = [&b"\x89\xfd\0\0\0\0"[..], &[b'p'; 125]].concat();
    let pings = ping.repeat(500);
    stream.set_write_timeout(Some(Duration::from_secs(2))).unwrap();
    let mut sent = 0;
    while sent < 200 * MIB {
        match stream.write(&pings) {
            Ok(count) => sent += count as u64,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => panic!("{error} after {sent} bytes"),
        }
    }
    sent
}

#[test]
fn pings_with_unread_answers_cost_no_memory() {
    let server = Server::start();
    let sleeper = server.run("sleep 600", json!(null));
    for path in [format!("{sleeper}/attach"), "/codex".to_owned()] {
        let mut stream = server.ask("GET", &path, UPGRADE, "");
        let mut head = [0; 12];
        stream.read_exact(&mut head).unwrap();
        assert_eq!(&head, b"HTTP/1.1 101");
        let before = server.memory();
        let sent = ping_without_reading(&stream);
        let grown = server.memory().saturating_sub(before);
        // The kernel holds some megabytes of pings and as much of answers.
        assert!(sent < 100 * MIB, "the server has taken {sent} bytes of pings at {path}");
        assert!(grown < 8 * MIB, "{sent} bytes of pings cost {grown} bytes at {path}");
        // When the client reads again, every accepted ping is answered.
        let mut pongs = vec![0; 4 << 20];
        stream.read_exact(&mut pongs).unwrap();
        assert!(pongs.windows(4).any(|four| four == b"\x8a\x7dpp"), "there are answers");
    }
}

/// Clients that send this request and read nothing.
fn stalled(server: &Server, path: &str, fields: &str) -> Vec<TcpStream> {
    let stall = |_| {
        let stream = server.ask("GET", path, fields, "");
        // Small kernel buffers, so that the server soon has to wait.
        set_socket_recv_buffer_size(&stream, 4096).unwrap();
        stream
    };
    (0..100).map(stall).collect()
}

#[test]
fn a_client_that_does_not_read_costs_some_kilobytes_until_it_disconnects() {
    let server = Server::start();
    let text = "yes 'a line of some build' | head -c 20000000";
    let path = server.run(text, json!({ "exit": true }));
    for (below, fields, most) in [
        ("follow", "", 80 << 10),
        ("attach", UPGRADE, 80 << 10),
        ("output?from=0&max_bytes=20000000", "", 160 << 10),
    ] {
        let before = server.memory();
        let clients = stalled(&server, &format!("{path}/{below}"), fields);
        for mut client in &clients {
            client.read_exact(&mut [0; 12]).unwrap();
        }
        let each = server.memory().saturating_sub(before) / clients.len() as u64;
        assert!(each < most, "{each} bytes for each client of {below}");
        drop(clients);
        eventually("the memory is given back", || server.memory() < before + 6 * MIB);
    }
}

#[test]
fn a_body_that_does_not_fit_into_memory_is_refused() {
    let server = Server::start();
    let body = json!({ "command": ["true", "x".repeat(15 << 20)] }).to_string();
    let pid = Pid::from_raw(worker_of(&server.daemon.child).cast_signed()).unwrap();
    let room = Some(server.bytes("VmSize") + 40 * MIB);
    prlimit(Some(pid), Resource::As, Rlimit { current: room, maximum: room }).unwrap();
    for _ in 0..3 {
        let (status, answer) = server.answer("POST", "/v1/processes", &body);
        assert_eq!((status, &answer["error"]["code"]), (503, &json!("out_of_memory")), "{answer}");
    }
    let (status, answer) = server.answer("POST", "/v1/processes", r#"{"command":["true"]}"#);
    assert_eq!(status, 201, "{answer}");
}

/// A connection that is upgraded to a WebSocket.
fn upgraded(server: &Server, path: &str) -> TcpStream {
    let mut stream = server.ask("GET", path, UPGRADE, "");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    assert!(head.starts_with(b"HTTP/1.1 101"), "{head:?}");
    stream
}

/// The header of a frame with a mask of zeros.
fn frame(first: u8, len: u64) -> Vec<u8> {
    [&[first, 0xff][..], &len.to_be_bytes(), &[0; 4]].concat()
}

#[test]
fn unfinished_messages_share_a_limit() {
    let server = Server::start();
    let sleeper = server.run("sleep 600", json!(null));
    let clients: Vec<_> =
        (0..300).map(|_| upgraded(&server, &format!("{sleeper}/attach"))).collect();
    let before = server.memory();
    // One half in one frame, the other in two.
    let bytes = vec![b'x'; 1 << 20];
    for (number, mut client) in clients.iter().enumerate() {
        let part = if number % 2 == 0 { frame(0x82, MIB) } else { frame(0x02, MIB / 2) };
        client.write_all(&part).unwrap();
        client.write_all(&bytes[..bytes.len() / 2]).unwrap();
        if number % 2 == 1 {
            client.write_all(&frame(0x80, MIB / 2)).unwrap();
        }
        client.write_all(&bytes[..bytes.len() / 2 - 1]).unwrap();
    }
    eventually("much is taken", || server.memory() > before + 80 * MIB);
    // These requests take longer than reading what is still on its way.
    let look = |_| {
        server.answer("GET", "/healthz", "");
        server.memory().saturating_sub(before)
    };
    let grown = (0..300).map(look).max().unwrap();
    assert!(grown < 180 * MIB, "300 MiB of messages cost {grown} bytes");
    drop(clients);
    let mut client = upgraded(&server, &format!("{sleeper}/attach"));
    client.write_all(&frame(0x82, MIB)).unwrap();
    client.write_all(&bytes).unwrap();
    eventually("it is taken", || server.accepted(&sleeper) == MIB);
}

#[test]
fn the_memory_of_a_large_message_is_freed() {
    let server = Server::start();
    let reader = server.run("cat > /dev/null", json!(null));
    let clients: Vec<_> =
        (0..100).map(|_| upgraded(&server, &format!("{reader}/attach"))).collect();
    let before = server.memory();
    let message = [frame(0x82, MIB), vec![b'x'; 1 << 20]].concat();
    for mut client in &clients {
        client.write_all(&message).unwrap();
    }
    eventually("all is taken", || server.accepted(&reader) == 100 * MIB);
    eventually("it is given back", || server.memory() < before + 30 * MIB);
}

#[test]
fn announced_messages_that_do_not_fit_into_memory_do_not_end_the_server() {
    let server = Server::start();
    let pid = Pid::from_raw(worker_of(&server.daemon.child).cast_signed()).unwrap();
    let room = Some(server.bytes("VmSize") + 300 * MIB);
    prlimit(Some(pid), Resource::As, Rlimit { current: room, maximum: room }).unwrap();
    let mut clients: Vec<_> = (0..20).map(|_| upgraded(&server, "/codex")).collect();
    for (client, first) in clients.iter_mut().zip([0x81, 0x01, 0x89].into_iter().cycle()) {
        client.write_all(&frame(first, 128 * MIB)).unwrap();
        client.write_all(b"{").unwrap();
    }
    let (status, answer) = server.answer("POST", "/v1/processes", r#"{"command":["true"]}"#);
    assert_eq!(status, 201, "{answer}");
    // A control frame of that size is refused at once.
    let ended = clients[2].read_to_end(&mut Vec::new());
    let timed_out = ended.is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
    assert!(!timed_out, "the connection is still open");
}

#[test]
fn simultaneous_starts_with_one_key_are_one_process() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    for (path, field) in [
        ("/v1/processes", "key"),
        ("/api/v0/processes/start", "idempotency_key"),
        ("/api/v0/processes/start", "client_token"),
    ] {
        let ran = folder.path().join(field);
        let shell = format!("echo ran >> {}; exec sleep 600", ran.display());
        let command = if field == "key" { "shell" } else { "command" };
        let body = json!({ command: shell, field: format!("one-{field}") }).to_string();
        let starts: Vec<_> =
            (0..50).map(|_| server.ask("POST", path, "Connection: close\r\n", &body)).collect();
        let mut ids: Vec<_> = starts.into_iter().map(started_id).collect();
        ids.dedup();
        assert_eq!(ids.len(), 1, "{field}: {ids:?}");
        eventually("it runs", || fs::read_to_string(&ran).is_ok_and(|text| text == "ran\n"));
        // Another request under the same key is refused, and starts nothing.
        let other = json!({ command: "echo other", field: format!("one-{field}") }).to_string();
        assert_eq!(server.answer("POST", path, &other).0, 409, "{field}");
        assert_eq!(fs::read_to_string(&ran).unwrap(), "ran\n", "{field}");
    }
}

fn started_id(mut stream: TcpStream) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 20"), "{text}");
    let answer: Value = serde_json::from_str(body).unwrap();
    let id = answer["process"]["id"].as_str().or(answer["id"].as_str());
    id.unwrap_or_else(|| panic!("{answer}")).to_owned()
}
