//! A daemon started by hand, and clients on bare sockets.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command};

use lastbyte_testkit::PATIENCE;
use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{Finished, Fixture, LASTBYTE, kill_server, send, send_to_all, start};

/// A running daemon; killed when dropped.
pub struct Daemon {
    pub child: Child,
    pub stdout: BufReader<ChildStdout>,
    pub stderr: Option<BufReader<ChildStderr>>,
}

impl Drop for Daemon {
    fn drop(&mut self) {
        kill_server(&mut self.child);
    }
}

impl Daemon {
    pub fn start(command: Command) -> Self {
        let mut child = start(command);
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let stderr = child.stderr.take().map(BufReader::new);
        Self { child, stdout, stderr }
    }

    /// The next address that it prints.
    pub fn address(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        let address = line.strip_prefix("listening on ").unwrap_or_else(|| panic!("{line:?}"));
        address.trim_end().to_owned()
    }

    /// Sends the signal and waits until it has ended.
    pub fn stop(mut self, signal: Signal) -> Finished {
        match signal {
            Signal::KILL => send_to_all(&self.child, signal),
            _ => send(&self.child, signal),
        }
        let (mut stdout, mut stderr) = (String::new(), String::new());
        if let Some(pipe) = &mut self.stderr {
            pipe.read_to_string(&mut stderr).unwrap();
        }
        self.stdout.read_to_string(&mut stdout).unwrap();
        Finished { code: self.child.wait().unwrap().code(), stdout, stderr }
    }
}

pub fn serve(fixture: &Fixture, arguments: &[&str]) -> Command {
    let mut command = fixture.program(&LASTBYTE);
    command.env("XDG_RUNTIME_DIR", runtime(fixture)).env_remove("LASTBYTE_LOG");
    command.arg("serve").args(arguments);
    command
}

/// Creates the folder for sockets.
pub fn runtime(fixture: &Fixture) -> PathBuf {
    let folder = fixture.home.path().join("run");
    fs::create_dir_all(&folder).unwrap();
    folder
}

pub fn state(fixture: &Fixture) -> PathBuf {
    fixture.home.path().join("state/lastbyte")
}

pub fn mode(path: impl AsRef<Path>) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// The status line of the answer to a GET with these additional header fields.
fn status_of(mut stream: impl Read + Write, path: &str, fields: &str) -> String {
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{fields}\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.lines().next().unwrap_or_default().to_owned()
}

pub fn get_unix(path: impl AsRef<Path>) -> String {
    let stream = UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    status_of(stream, "/healthz", "")
}

pub fn get_tcp(url: &str, path: &str, fields: &str) -> String {
    let stream = TcpStream::connect(url.strip_prefix("http://").unwrap()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    status_of(stream, path, fields)
}

/// The fields of each line of the log, without messages for people.
pub fn log(stderr: &str) -> Vec<Value> {
    let is_message = |line: &str| {
        let behind_time = line.split_once(' ').map_or("", |(_, rest)| rest);
        [line, behind_time].iter().any(|text| text.starts_with("lastbyte: "))
    };
    let lines = stderr.lines().filter(|line| !is_message(line));
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A connection to its socket.
pub fn connect(fixture: &Fixture) -> UnixStream {
    let stream = UnixStream::connect(runtime(fixture).join("lastbyte/socket")).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Sends a request whose answer is the last on this connection.
pub fn get(stream: &UnixStream, path: &str) {
    ask(stream, "GET", path, "");
}

/// The same, with a body.
pub fn post(stream: &UnixStream, path: &str, body: &Value) {
    ask(stream, "POST", path, &body.to_string());
}

fn ask(mut stream: &UnixStream, method: &str, path: &str, body: &str) {
    let fields = format!("Connection: close\r\nContent-Length: {}\r\n", body.len());
    let request = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n{body}");
    stream.write_all(request.as_bytes()).unwrap();
}

/// The body of that answer.
pub fn answer(mut stream: UnixStream) -> Value {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    serde_json::from_str(body).unwrap_or(Value::Null)
}
