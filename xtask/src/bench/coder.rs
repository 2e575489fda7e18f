//! The daemon through the API of Coder's workspace agent.

use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::daemon::{Daemon, EmptyRoute};
use super::samples::{WARM_UP, in_turn, timed};
use super::spawn::plain;
use super::usage::ProcessUsage;
use super::wire::{self, Address, Connection, rate};

const ROUNDS: usize = 1000;
const KILLS: usize = 300;
const CLIENTS: usize = 16;
const FOR: Duration = Duration::from_secs(3);
const MANY: usize = 1000;
const SLEEP: &str = "exec sleep 600";

pub(super) fn run() -> Result<()> {
    let daemon = Daemon::start()?;
    start_and_wait(&daemon.tcp())?;
    polls(&daemon)?;
    exits(&daemon)?;
    many(&daemon)
}

fn start_and_wait(address: &Address) -> Result<()> {
    let mut coder = Coder::open(address)?;
    let [run, floor, shell] = in_turn(WARM_UP, ROUNDS, || {
        let run = timed(|| coder.start("/bin/true").and_then(|id| coder.wait(&id)))?;
        Ok([run, plain()?, timed(through_shell)?])
    })?;
    println!(
        "coder: start, then output?wait=true, of /bin/true, over TCP, in turn with posix_spawn"
    );
    println!("  floor  {floor}");
    println!("  by sh  {shell}");
    println!("  run    {run}");
    println!(
        "  ratio  {:.2} gross, both calls included; {:.2} to the floor by sh, which the agent runs too",
        run.ratio_to(&floor),
        run.ratio_to(&shell)
    );
    Ok(())
}

fn through_shell() -> Result<()> {
    let mut command = Command::new("sh");
    command.args(["-c", "/bin/true"]).stdin(Stdio::null()).stderr(Stdio::null()).output()?;
    Ok(())
}

fn polls(daemon: &Daemon) -> Result<()> {
    let (floor, mut coder) = (EmptyRoute::start()?, Coder::open(&daemon.tcp())?);
    let small = coder.start("echo hello")?;
    // In short lines, because longer ones are shortened.
    let large = coder.start(&format!("yes {} | head -c 32768", "x".repeat(63)))?;
    coder.wait(&small)?;
    coder.wait(&large)?;
    println!("coder: polls per second, {CLIENTS} clients over TCP, {} s each", FOR.as_secs());
    let none = rate(&floor.address(), "/", (CLIENTS, FOR))?;
    println!("  {none:6.0}  an empty route of axum alone");
    for (what, id) in [("output of 6 bytes", small), ("output of 32 KiB", large)] {
        let path = format!("/api/v0/processes/{id}/output");
        let rate = rate(&daemon.tcp(), &path, (CLIENTS, FOR))?;
        println!("  {rate:6.0}  {what}, {:.2} of the floor's rate", rate / none);
    }
    Ok(())
}

/// From a kill to the answer of the waiting client, in turn with a child of this process.
fn exits(daemon: &Daemon) -> Result<()> {
    let (mut coder, mut waiter) = (Coder::open(&daemon.unix())?, Coder::open(&daemon.unix())?);
    let [answer, floor] = in_turn(0, KILLS, || {
        let id = coder.start(SLEEP)?;
        let pid = coder.pid(&id)?;
        waiter.ask_to_wait(&id)?;
        settle();
        let answered = timed(|| {
            kill_process(pid, Signal::KILL)?;
            waiter.0.answer()
        })?;
        Ok([answered, floor_kill()?])
    })?;
    println!("coder: from the kill of a process to the answer of its waiter, unix socket");
    println!("  floor  {floor}, a child of this process");
    println!("  answer {answer}");
    let over = |share| {
        let (answer, floor) = (answer.quantile(share), floor.quantile(share));
        (answer.as_secs_f64() - floor.as_secs_f64()) * 1e3
    };
    println!("  over the floor {:.2} ms at p50, {:.2} at p99", over(0.5), over(0.99));
    Ok(())
}

/// Lets waiters and sleepers block first, so that waking them is measured.
fn settle() {
    thread::sleep(Duration::from_millis(2));
}

fn floor_kill() -> Result<Duration> {
    let mut child: Child = Command::new("sleep").arg("600").stdout(Stdio::null()).spawn()?;
    settle();
    timed(|| {
        child.kill()?;
        Ok(child.wait()?)
    })
}

/// Many processes, each with a waiter: memory, the list of them, and killing them all.
fn many(daemon: &Daemon) -> Result<()> {
    let mut coder = Coder::open(&daemon.unix())?;
    let before = ProcessUsage::read(daemon.pid())?;
    let ids: Vec<String> = (0..MANY).map(|_| coder.start(SLEEP)).collect::<Result<_>>()?;
    let running = ProcessUsage::read(daemon.pid())?;
    let mut waiting = Vec::new();
    for id in &ids {
        let mut waiter = Coder::open(&daemon.unix())?;
        waiter.ask_to_wait(id)?;
        waiting.push(waiter.0);
    }
    let each = (running.memory - before.memory) as f64 / MANY as f64 / 1e3;
    println!("coder: {MANY} sleeping processes, {MANY} clients waiting for them");
    println!("  before   {before}");
    println!("  running  {running}: {each:.1} KB each");
    println!("  waited   {}", ProcessUsage::read(daemon.pid())?);
    lists(daemon)?;
    let begun = Instant::now();
    let answered = thread::scope(|scope| -> Result<Vec<Instant>> {
        let reader = scope.spawn(|| wire::answered(&mut waiting));
        for id in &ids {
            coder.kill(id)?;
        }
        reader.join().expect("a reader panicked")
    })?;
    let last = answered.iter().max().context("no answer")?.duration_since(begun);
    drop(waiting);
    println!("  all killed in sequence: {} answered in {last:.2?}", answered.len());
    println!("  after    {}", ProcessUsage::read(daemon.pid())?);
    Ok(())
}

fn lists(daemon: &Daemon) -> Result<()> {
    let list = rate(&daemon.tcp(), "/api/v0/processes/list", (1, FOR))?;
    println!("  list     {list:.0} per second, {:.2} ms each, one client", 1e3 / list);
    Ok(())
}

/// A connection that speaks Coder's process API.
pub(super) struct Coder(Connection);

impl Coder {
    pub(super) fn open(address: &Address) -> Result<Self> {
        Connection::open(address).map(Self)
    }

    pub(super) fn start(&mut self, command: &str) -> Result<String> {
        let body = serde_json::json!({ "command": command }).to_string();
        let answer: Value =
            serde_json::from_slice(&self.0.post("/api/v0/processes/start", &body)?)?;
        Ok(answer["id"].as_str().with_context(|| format!("not started: {answer}"))?.to_owned())
    }

    fn ask_to_wait(&mut self, id: &str) -> Result<()> {
        self.0.send("GET", &format!("/api/v0/processes/{id}/output?wait=true"), "")
    }

    pub(super) fn wait(&mut self, id: &str) -> Result<()> {
        self.ask_to_wait(id)?;
        self.0.answer().map(drop)
    }

    fn kill(&mut self, id: &str) -> Result<()> {
        self.0.post(&format!("/api/v0/processes/{id}/signal"), r#"{"signal":"kill"}"#).map(drop)
    }

    /// Taken from the native API, because that of Coder does not have it.
    fn pid(&mut self, id: &str) -> Result<Pid> {
        let shown: Value = serde_json::from_slice(&self.0.get(&format!("/v1/processes/{id}"))?)?;
        let pid = shown["pid"].as_i64().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        pid.with_context(|| format!("no pid: {shown}"))
    }
}
