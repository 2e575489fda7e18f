//! A minimal HTTP client, so that the measurements show the server.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, poll};

/// Starts `/bin/true` and waits for its exit.
pub(crate) const RUN_TRUE: &str = r#"{"command":["/bin/true"],"wait":{"exit":true}}"#;
/// The header fields that open a WebSocket.
pub(crate) const UPGRADE: &str = "Connection: upgrade\r\nUpgrade: websocket\r\n\
                                  Sec-WebSocket-Version: 13\r\n\
                                  Sec-WebSocket-Key: bGFzdGJ5dGUgaXMgaGVyZQ==\r\n";

/// Where a server listens.
#[derive(Clone)]
pub(crate) enum Address {
    Unix(PathBuf),
    Tcp(SocketAddr),
}

/// A connection and the bytes received but not yet used.
pub(crate) struct Connection {
    stream: Box<dyn Socket>,
    buffer: Vec<u8>,
}

trait Socket: Read + Write + AsFd + Send {
    fn limit_reads(&self, to: Duration) -> io::Result<()>;
}

impl Socket for UnixStream {
    fn limit_reads(&self, to: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(to))
    }
}

impl Socket for TcpStream {
    fn limit_reads(&self, to: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(to))
    }
}

impl Connection {
    pub(crate) fn open(address: &Address) -> Result<Self> {
        let stream: Box<dyn Socket> = match address {
            Address::Unix(path) => Box::new(UnixStream::connect(path)?),
            Address::Tcp(address) => {
                let stream = TcpStream::connect(address)?;
                stream.set_nodelay(true)?;
                Box::new(stream)
            }
        };
        Ok(Self { stream, buffer: Vec::new() })
    }

    /// Makes a read that takes longer fail.
    pub(crate) fn limit_reads(&self, to: Duration) -> Result<()> {
        Ok(self.stream.limit_reads(to)?)
    }

    pub(crate) fn get(&mut self, path: &str) -> Result<Vec<u8>> {
        self.send("GET", path, "")?;
        self.answer()
    }

    pub(crate) fn post(&mut self, path: &str, body: &str) -> Result<Vec<u8>> {
        self.send("POST", path, body)?;
        self.answer()
    }

    /// Starts a process and returns its id.
    pub(crate) fn start(&mut self, body: &str) -> Result<String> {
        let answer: serde_json::Value = serde_json::from_slice(&self.post("/v1/processes", body)?)?;
        let id = answer["process"]["id"].as_str();
        Ok(id.with_context(|| format!("not started: {answer}"))?.to_owned())
    }

    pub(crate) fn delete(&mut self, path: &str) -> Result<()> {
        self.send("DELETE", path, "")?;
        self.answer().map(drop)
    }

    pub(crate) fn send(&mut self, method: &str, path: &str, body: &str) -> Result<()> {
        self.send_with(method, path, "", body)
    }

    /// With more header fields, each ending with `\r\n`.
    pub(crate) fn send_with(
        &mut self,
        method: &str,
        path: &str,
        fields: &str,
        body: &str,
    ) -> Result<()> {
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n{fields}\r\n{body}"
        );
        Ok(self.stream.write_all(request.as_bytes())?)
    }

    /// Waits until there is something to read, without reading it.
    pub(crate) fn wait_readable(&self) -> Result<()> {
        poll(&mut [PollFd::from_borrowed_fd(self.stream.as_fd(), PollFlags::IN)], None)?;
        Ok(())
    }

    /// Reads the body of an answer with a `Content-Length`.
    pub(crate) fn answer(&mut self) -> Result<Vec<u8>> {
        loop {
            if let Some(end) = self.buffer.windows(4).position(|four| four == b"\r\n\r\n") {
                let (head, from) = (String::from_utf8_lossy(&self.buffer[..end]), end + 4);
                if !head.starts_with("HTTP/1.1 2") {
                    bail!("request failed: {head}");
                }
                let length = if head.starts_with("HTTP/1.1 204") {
                    0
                } else {
                    length_in(&head).with_context(|| format!("no length: {head}"))?
                };
                while self.buffer.len() < from + length {
                    self.fill()?;
                }
                let rest = self.buffer.split_off(from + length);
                let answer = std::mem::replace(&mut self.buffer, rest);
                return Ok(answer[from..].to_vec());
            }
            self.fill()?;
        }
    }

    /// Reads and drops everything up to and including this text.
    pub(crate) fn read_until(&mut self, text: &[u8]) -> Result<()> {
        loop {
            if let Some(begin) = self.buffer.windows(text.len()).position(|part| part == text) {
                self.buffer.drain(..begin + text.len());
                return Ok(());
            }
            self.buffer.drain(..self.buffer.len().saturating_sub(text.len()));
            self.fill()?;
        }
    }

    fn fill(&mut self) -> Result<()> {
        let mut chunk = [0; 64 * 1024];
        let count = self.stream.read(&mut chunk)?;
        if count == 0 {
            bail!("the server closed the connection");
        }
        self.buffer.extend(&chunk[..count]);
        Ok(())
    }
}

/// When each connection was answered, as seen by one thread.
pub(crate) fn answered(connections: &mut [Connection]) -> Result<Vec<Instant>> {
    let mut times = Vec::new();
    let mut left: Vec<&mut Connection> = connections.iter_mut().collect();
    while !left.is_empty() {
        let mut fds: Vec<PollFd<'_>> = left
            .iter()
            .map(|one| PollFd::from_borrowed_fd(one.stream.as_fd(), PollFlags::IN))
            .collect();
        poll(&mut fds, None)?;
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(fds);
        let now = Instant::now();
        let mut ready = ready.into_iter();
        let mut failed = None;
        left.retain_mut(|one| {
            let is_ready = ready.next().unwrap_or(false);
            if is_ready {
                times.push(now);
                failed = failed.take().or(one.answer().err());
            }
            !is_ready
        });
        if let Some(error) = failed {
            return Err(error);
        }
    }
    Ok(times)
}

fn length_in(head: &str) -> Option<usize> {
    head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("content-length").then(|| value.parse().ok())?
    })
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(_) => write!(out, "over the unix socket"),
            Self::Tcp(_) => write!(out, "over TCP"),
        }
    }
}

/// How many answers per second several clients get, each with its own connection.
pub(crate) fn rate(
    address: &Address,
    path: &str,
    (clients, time): (usize, Duration),
) -> Result<f64> {
    let deadline = Instant::now() + time;
    let counts = thread::scope(|scope| -> Result<u64> {
        let client = || -> Result<u64> {
            let mut connection = Connection::open(address)?;
            let mut count = 0;
            while Instant::now() < deadline {
                connection.get(path)?;
                count += 1;
            }
            Ok(count)
        };
        let clients: Vec<_> = (0..clients).map(|_| scope.spawn(client)).collect();
        clients.into_iter().map(|client| client.join().expect("a client panicked")).sum()
    })?;
    Ok(counts as f64 / time.as_secs_f64())
}
