//! As little of HTTP as it takes, so that what is measured is the server.

use std::fmt;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, poll};

/// Where a server listens.
#[derive(Clone)]
pub(super) enum Address {
    Unix(PathBuf),
    Tcp(SocketAddr),
}

/// A connection, with what came and was not read yet.
pub(super) struct Connection {
    stream: Stream,
    buffer: Vec<u8>,
}

enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Connection {
    pub(super) fn open(address: &Address) -> Result<Self> {
        let stream = match address {
            Address::Unix(path) => Stream::Unix(UnixStream::connect(path)?),
            Address::Tcp(address) => {
                let stream = TcpStream::connect(address)?;
                stream.set_nodelay(true)?;
                Stream::Tcp(stream)
            }
        };
        Ok(Self { stream, buffer: Vec::new() })
    }

    pub(super) fn get(&mut self, path: &str) -> Result<Vec<u8>> {
        self.send("GET", path, "")?;
        self.answer()
    }

    pub(super) fn post(&mut self, path: &str, body: &str) -> Result<Vec<u8>> {
        self.send("POST", path, body)?;
        self.answer()
    }

    /// Starts a process and returns its id.
    pub(super) fn start(&mut self, body: &str) -> Result<String> {
        let answer: serde_json::Value = serde_json::from_slice(&self.post("/v1/processes", body)?)?;
        let id = answer["process"]["id"].as_str();
        Ok(id.with_context(|| format!("not started: {answer}"))?.to_owned())
    }

    pub(super) fn delete(&mut self, path: &str) -> Result<()> {
        self.send("DELETE", path, "")?;
        self.answer().map(drop)
    }

    pub(super) fn send(&mut self, method: &str, path: &str, body: &str) -> Result<()> {
        self.send_with(method, path, "", body)
    }

    /// With further fields, each with the end of its line.
    pub(super) fn send_with(
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
        match &mut self.stream {
            Stream::Unix(stream) => stream.write_all(request.as_bytes())?,
            Stream::Tcp(stream) => stream.write_all(request.as_bytes())?,
        }
        Ok(())
    }

    /// Waits until there is something to read, and leaves it where it is.
    pub(super) fn until_something_comes(&self) -> Result<()> {
        poll(&mut [PollFd::from_borrowed_fd(self.fd(), PollFlags::IN)], None)?;
        Ok(())
    }

    /// The body of an answer that says its length.
    pub(super) fn answer(&mut self) -> Result<Vec<u8>> {
        loop {
            if let Some(end) = self.buffer.windows(4).position(|four| four == b"\r\n\r\n") {
                let (head, from) = (String::from_utf8_lossy(&self.buffer[..end]), end + 4);
                if !head.starts_with("HTTP/1.1 2") {
                    bail!("refused: {head}");
                }
                let length = match head.starts_with("HTTP/1.1 204") {
                    true => 0,
                    false => length_in(&head).with_context(|| format!("no length: {head}"))?,
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

    fn fill(&mut self) -> Result<()> {
        let mut chunk = [0; 64 * 1024];
        let count = match &mut self.stream {
            Stream::Unix(stream) => stream.read(&mut chunk)?,
            Stream::Tcp(stream) => stream.read(&mut chunk)?,
        };
        if count == 0 {
            bail!("the server closed the connection");
        }
        self.buffer.extend(&chunk[..count]);
        Ok(())
    }
}

/// When each of these was answered, as far as one thread can tell.
pub(super) fn answered(connections: &mut [Connection]) -> Result<Vec<Instant>> {
    let mut times = Vec::new();
    let mut left: Vec<&mut Connection> = connections.iter_mut().collect();
    while !left.is_empty() {
        let mut fds: Vec<PollFd<'_>> =
            left.iter().map(|one| PollFd::from_borrowed_fd(one.fd(), PollFlags::IN)).collect();
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

impl Connection {
    fn fd(&self) -> std::os::fd::BorrowedFd<'_> {
        match &self.stream {
            Stream::Unix(stream) => stream.as_fd(),
            Stream::Tcp(stream) => stream.as_fd(),
        }
    }
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

/// How many answers of this path so many clients get in a second, each on a connection of its own.
pub(super) fn rate(
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
