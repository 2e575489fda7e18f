//! The daemon over its sockets: a run in one call, small answers, and many waiters for one ending.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::daemon::{Daemon, EmptyRoute};
use super::samples::{WARM_UP, in_turn, timed};
use super::spawn::plain;
use super::wire::{self, Address, Connection, RUN_TRUE, rate};

const ROUNDS: usize = 1000;
const CLIENTS: usize = 8;
const WAITERS: usize = 1000;
const FOR: Duration = Duration::from_secs(3);

pub(super) fn run() -> Result<()> {
    let daemon = Daemon::start()?;
    println!("http: start + wait of /bin/true in one call, in turn with posix_spawn and with an");
    println!("      empty call on the same connection");
    for address in [daemon.unix(), daemon.tcp()] {
        one_call(&address)?;
    }
    answers(&daemon)?;
    waiters(&daemon)
}

fn one_call(address: &Address) -> Result<()> {
    let mut connection = Connection::open(address)?;
    let [run, empty, floor] = in_turn(WARM_UP, ROUNDS, || {
        let run = timed(|| connection.post("/v1/processes", RUN_TRUE))?;
        Ok([run, timed(|| connection.get("/v1"))?, plain()?])
    })?;
    println!("  {address}");
    println!("    floor  {floor}");
    println!("    empty  {empty}");
    println!("    run    {run}");
    let (net, gross) = (run.net_ratio_to(&floor, &empty), run.ratio_to(&floor));
    println!("    ratio  {net:.2} net, {gross:.2} gross (aim: at most 1.25 net)");
    Ok(())
}

/// Requests per second of several clients, each with its own connection.
fn answers(daemon: &Daemon) -> Result<()> {
    let floor = EmptyRoute::start()?;
    let mut connection = Connection::open(&daemon.tcp())?;
    let small = connection.start(r#"{"shell":"echo hello","wait":{"exit":true}}"#)?;
    let large = r#"{"shell":"head -c 32768 /dev/zero | tr '\\0' x","wait":{"exit":true}}"#;
    let large = connection.start(large)?;
    println!("http: requests per second, {CLIENTS} clients over TCP, {} s each", FOR.as_secs());
    let none = rate(&floor.address(), "/", (CLIENTS, FOR))?;
    println!("  {none:6.0}  an empty route of axum alone");
    for (what, path) in [
        ("show", format!("/v1/processes/{small}")),
        ("output of 6 bytes", format!("/v1/processes/{small}/output")),
        ("output of 32 KiB", format!("/v1/processes/{large}/output")),
    ] {
        let rate = rate(&daemon.tcp(), &path, (CLIENTS, FOR))?;
        println!("  {rate:6.0}  {what}, {:.2} of the floor's rate", rate / none);
    }
    Ok(())
}

/// How far apart the answers to waiters for the same ending are.
fn waiters(daemon: &Daemon) -> Result<()> {
    let mut control = Connection::open(&daemon.unix())?;
    let id = control.start(r#"{"shell":"read line","stdin":"open"}"#)?;
    let path = format!("/v1/processes/{id}/wait");
    let mut waiting = Vec::new();
    for _ in 0..WAITERS {
        let mut connection = Connection::open(&daemon.unix())?;
        connection.send("POST", &path, r#"{"exit":true}"#)?;
        waiting.push(connection);
    }
    let ready = Barrier::new(2);
    let (told, answered) = thread::scope(|scope| -> Result<_> {
        let reader = scope.spawn(|| -> Result<Vec<Instant>> {
            ready.wait();
            wire::answered(&mut waiting)
        });
        ready.wait();
        let told = Instant::now();
        control.post(&format!("/v1/processes/{id}/stdin"), "\n")?;
        Ok((told, reader.join().expect("a reader panicked")?))
    })?;
    let first = answered.iter().min().context("no answer")?.duration_since(told);
    let last = answered.iter().max().context("no answer")?.duration_since(told);
    println!("http: {WAITERS} waiters for one ending, over the unix socket");
    println!("  first answered {:.2} ms after its input", first.as_secs_f64() * 1e3);
    println!("  last  answered {:.2} ms after its input", last.as_secs_f64() * 1e3);
    Ok(())
}
