//! A scripted server: for each connection in turn, the answers that it sends before it closes it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};

use lastbyte_client::Client;
use lastbyte_testkit::eventually;

/// What the server does with one request.
#[derive(Debug, Clone)]
pub enum Step {
    Answer(String),
    /// Close the connection after the request, without an answer.
    Hang,
    /// Close it without waiting for a request, when the other end of this is dropped.
    CloseAfter(Arc<Mutex<Receiver<()>>>),
}

/// Its thread ends with the last connection of the script.
pub struct Server {
    folder: tempfile::TempDir,
    heard: Heard,
}

#[derive(Clone, Default)]
pub struct Heard(Arc<Mutex<Vec<String>>>);

impl Server {
    pub fn start(script: Vec<Vec<Step>>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("socket")).unwrap();
        let heard = Heard::default();
        let hears = heard.clone();
        std::thread::spawn(move || {
            for steps in script {
                hears.attend(listener.accept().unwrap().0, steps);
            }
        });
        Self { folder, heard }
    }

    pub fn client(&self) -> Client {
        Client::unix(self.folder.path().join("socket"))
    }

    /// The requests so far, head and body, and `closed` for each connection that ended.
    pub fn heard(&self) -> Vec<String> {
        self.heard.0.lock().unwrap().clone()
    }

    pub fn until_heard(&self, what: &str) {
        eventually(what, || self.heard().iter().any(|heard| heard == what));
    }
}

/// A server for one connection over TCP, and its address.
pub fn over_tcp(steps: Vec<Step>) -> (SocketAddr, Heard) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    let heard = Heard::default();
    let hears = heard.clone();
    std::thread::spawn(move || hears.attend(listener.accept().unwrap().0, steps));
    (addr, heard)
}

impl Heard {
    pub fn requests(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    fn attend(&self, mut connection: impl Read + Write, steps: Vec<Step>) {
        for step in steps {
            if let Step::CloseAfter(gone) = step {
                // Nothing is sent on this channel.
                _ = gone.lock().unwrap().recv();
                break;
            }
            let Some(request) = request(&mut connection) else { break };
            self.0.lock().unwrap().push(request);
            match step {
                Step::Answer(answer) => connection.write_all(answer.as_bytes()).unwrap(),
                Step::Hang | Step::CloseAfter(_) => break,
            }
        }
        drop(connection);
        self.0.lock().unwrap().push("closed".into());
    }
}

/// Reads one request; `None` when the client has closed the connection.
fn request(connection: &mut impl Read) -> Option<String> {
    let mut text = Vec::new();
    while !text.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        match connection.read(&mut byte).unwrap() {
            0 => return None,
            _ => text.push(byte[0]),
        }
    }
    let head = String::from_utf8(text).unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    connection.read_exact(&mut body).unwrap();
    Some(head + &String::from_utf8(body).unwrap())
}

pub fn answer(status: u16, head: &str, body: &str) -> Step {
    Step::Answer(format!(
        "HTTP/1.1 {status} X\r\ncontent-length: {}\r\n{head}\r\n{body}",
        body.len()
    ))
}

/// An answer that ends with the connection.
pub fn stream(body: &str) -> Step {
    Step::Answer(format!("HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\n\r\n{body}"))
}

pub const HEALTH: &str =
    r#"{"version":"1","pid":7,"started_unix_ns":1,"processes":2,"running":1,"reach":"leaf"}"#;

pub fn healthy() -> Step {
    answer(200, "", HEALTH)
}
