//! Clients that use as much as they can: the daemon's memory before, at its peak, and how soon it
//! falls after they leave.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::daemon::Daemon;
use super::usage::ProcessUsage;
use super::wire::{Address, Connection, UPGRADE};

const STALLED: usize = 4000;
const FLOODING: usize = 1000;
const PINGS: usize = 10_000_000;
const BODIES: usize = 4000;
/// Longer than the server waits for a client that does not read its answer.
const HOLD: Duration = Duration::from_secs(25);
/// An empty ping frame, masked with zeros.
const PING: &[u8] = b"\x89\x80\0\0\0\0";
const OUTPUT: &str = r#"{"shell":"yes 'a line of some build' | head -c 64000000",
                        "wait":{"exit":true}}"#;

pub(super) fn run() -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })?;
    println!(
        "overload: memory of one daemon in MB: before, peak, after the clients left, how long that took"
    );
    let daemon = Daemon::start()?;
    let mut control = Connection::open(&daemon.unix())?;
    // Started first, because the server closes idle connections.
    let sleeper = control.start(r#"{"shell":"sleep 3600"}"#)?;
    let id = control.start(OUTPUT)?;
    let path = |below: &str| format!("/v1/processes/{id}/{below}");
    for (what, path, fields) in [
        ("following, never reading", path("follow"), ""),
        ("attached, never reading", path("attach"), UPGRADE),
        ("requesting raw output, never reading", path("output?from=0&max_bytes=60000000"), ""),
    ] {
        let stall = || ask_many(&daemon, STALLED, "GET", &path, fields);
        measure(&daemon, &format!("{STALLED} {what}"), stall, hold)?;
    }
    let begin = || ask_many(&daemon, BODIES, "POST", "/v1/processes", "");
    measure(&daemon, &format!("{BODIES} sending 64 KiB of a body of 16 MiB"), begin, send_some)?;
    for (door, path) in [("attach", path("attach?late=true")), ("codex", "/codex".to_owned())] {
        let begin = || ask_many(&daemon, FLOODING, "GET", &path, UPGRADE);
        let what = format!("{FLOODING} sending pings to {door}, never reading");
        measure(&daemon, &what, begin, flood)?;
    }
    let path = format!("/v1/processes/{sleeper}/attach");
    let one = || ask_many(&daemon, 1, "GET", &path, UPGRADE);
    measure(&daemon, &format!("{PINGS} pings of one client that reads"), one, ping)
}

fn measure(
    daemon: &Daemon,
    what: &str,
    begin: impl FnOnce() -> Result<Vec<TcpStream>>,
    act: impl FnOnce(&Daemon, &[TcpStream]) -> Result<u64>,
) -> Result<()> {
    let before = memory(daemon)?;
    let clients = begin().with_context(|| what.to_owned())?;
    let peak = act(daemon, &clients)?.max(memory(daemon)?);
    // The unix socket still answers.
    Connection::open(&daemon.unix())?.get("/healthz")?;
    drop(clients);
    let (after, took) = until_released(daemon, before)?;
    let mb = |bytes: u64| bytes as f64 / 1e6;
    println!(
        "  {:6.1} {:6.1} {:6.1} {:3} s  {what}",
        mb(before),
        mb(peak),
        mb(after),
        took.as_secs()
    );
    Ok(())
}

/// Waits until memory is about what it was before, at most a minute.
fn until_released(daemon: &Daemon, before: u64) -> Result<(u64, Duration)> {
    let begun = Instant::now();
    loop {
        let now = memory(daemon)?;
        if now < before + (5 << 20) || begun.elapsed() > Duration::from_secs(60) {
            return Ok((now, begun.elapsed()));
        }
        thread::park_timeout(Duration::from_millis(200));
    }
}

fn memory(daemon: &Daemon) -> Result<u64> {
    Ok(ProcessUsage::read(daemon.pid())?.memory)
}

/// Opens `count` connections and sends the head of this request on each.
fn ask_many(
    daemon: &Daemon,
    count: usize,
    method: &str,
    path: &str,
    fields: &str,
) -> Result<Vec<TcpStream>> {
    let Address::Tcp(address) = daemon.tcp() else { bail!("no port") };
    let length = if method == "GET" { 0 } else { 16 << 20 };
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n{fields}\r\n"
    );
    let ask = |_| -> Result<TcpStream> {
        let mut stream = TcpStream::connect(address)?;
        stream.write_all(head.as_bytes())?;
        Ok(stream)
    };
    (0..count).map(ask).collect()
}

/// Returns the peak memory during [`HOLD`].
fn hold(daemon: &Daemon, _: &[TcpStream]) -> Result<u64> {
    let (begun, mut peak) = (Instant::now(), 0);
    while begun.elapsed() < HOLD {
        peak = peak.max(memory(daemon)?);
        thread::park_timeout(Duration::from_millis(50));
    }
    Ok(peak)
}

fn send_some(daemon: &Daemon, clients: &[TcpStream]) -> Result<u64> {
    for mut client in clients {
        client.set_nonblocking(true)?;
        // Bytes that do not fit into the socket buffer are not sent.
        _ = client.write(&[b' '; 64 << 10]);
    }
    hold(daemon, clients)
}

/// Sends pings on all connections as fast as possible during [`HOLD`].
fn flood(daemon: &Daemon, clients: &[TcpStream]) -> Result<u64> {
    let pings = PING.repeat(10_000);
    let (begun, mut peak, mut sent) = (Instant::now(), 0, 0);
    clients.iter().try_for_each(|client| client.set_nonblocking(true))?;
    while begun.elapsed() < HOLD {
        for mut client in clients {
            match client.write(&pings) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => bail!("connection closed: {error}"),
            }
        }
        peak = peak.max(memory(daemon)?);
    }
    println!("                              {} pings were accepted", sent / PING.len());
    Ok(peak)
}

/// Sends pings and reads the answers.
fn ping(daemon: &Daemon, clients: &[TcpStream]) -> Result<u64> {
    let mut client = clients.first().context("no client")?;
    let mut reader = client.try_clone()?;
    let pings = PING.repeat(10_000);
    let mut peak = 0;
    thread::scope(|scope| -> Result<()> {
        let reading = scope.spawn(move || -> Result<usize> {
            let (mut buffer, mut got) = ([0; 64 << 10], 0);
            loop {
                match reader.read(&mut buffer)? {
                    0 => return Ok(got),
                    count => got += count,
                }
            }
        });
        for _ in 0..PINGS / 10_000 {
            client.write_all(&pings)?;
            peak = peak.max(memory(daemon)?);
        }
        client.shutdown(Shutdown::Write)?;
        let got = reading.join().expect("a reader panicked")?;
        println!("                              {got} bytes of answers were read");
        Ok(())
    })?;
    Ok(peak)
}
