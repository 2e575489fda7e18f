//! Clients of the other doors: Coder's process API, Codex's app-server, and the feed of events.

use std::collections::HashSet;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use lastbyte_client::{Client, News};
use serde_json::{Value, json};

use super::client::{again, is_away, pause};
use super::proc;
use super::server::{self, MARK, Server};
use super::tally::Tally;
use crate::bench::codex;
use crate::bench::wire::{Address, Connection};
use crate::random::Random;

/// How long a request is repeated while the server is away.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long what an app-server ran may outlive it.
const OUTLIVES: Duration = Duration::from_secs(2);

/// Runs commands through the Coder door until it is told to stop.
pub(super) fn coder(server: &Server, tally: &Tally, random: &mut Random, stop: &AtomicBool) {
    for nth in 0.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        match coder_once(server, nth, random) {
            Ok(bytes) => tally.ran("coder", bytes),
            Err(error) => tally.wrong_at(&format!("coder job {nth}"), &format!("{error:#}")),
        }
    }
}

fn coder_once(server: &Server, nth: u64, random: &mut Random) -> Result<u64> {
    let (lines, code) = (random.between(1, 800), random.between(0, 256));
    let pause = random.between(0, 3);
    let command = format!(
        "n=0; while [ $n -lt {lines} ]; do echo \"$n of {nth}\"; n=$((n+1)); done; \
         sleep 0.{pause}; exit {code}"
    );
    let body = json!({ "command": command, "client_token": format!("coder {nth}") }).to_string();
    let started = ask(server, "POST", "/api/v0/processes/start", &body).context("start")?;
    let id = started["id"].as_str().with_context(|| format!("not started: {started}"))?;
    let path = format!("/api/v0/processes/{id}/output?wait=true");
    let shown = ask(server, "GET", &path, "").with_context(|| format!("output of {id}"))?;
    let wanted: String = (0..lines).map(|line| format!("{line} of {nth}\n")).collect();
    ensure!(shown["exit_code"] == code, "{id}: exit code {} not {code}", shown["exit_code"]);
    let output = shown["output"].as_str().unwrap_or_default();
    ensure!(output == wanted, "{id}: {} bytes instead of {}", output.len(), wanted.len());
    forget(server, id).with_context(|| format!("deleting {id}"))?;
    Ok(wanted.len() as u64)
}

/// A server that has just taken over may not have seen the end of its output yet.
fn forget(server: &Server, id: &str) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let Err(error) = ask(server, "DELETE", &format!("/v1/processes/{id}"), "") else {
            return Ok(());
        };
        let text = error.to_string();
        // It was deleted by a request that was not answered.
        if text.contains("HTTP/1.1 404") {
            return Ok(());
        }
        ensure!(text.contains("HTTP/1.1 409") && Instant::now() < deadline, error);
        thread::sleep(Duration::from_millis(1));
    }
}

/// Repeats a request until it is answered.
fn ask(server: &Server, method: &str, path: &str, body: &str) -> Result<Value> {
    let deadline = Instant::now() + PATIENCE;
    let address = Address::Unix(server.socket());
    let once = || -> Result<Vec<u8>> {
        let mut connection = Connection::open(&address)?;
        connection.limit_reads(PATIENCE)?;
        connection.send(method, path, body)?;
        connection.answer()
    };
    loop {
        match once() {
            Ok(answer) if answer.is_empty() => return Ok(Value::Null),
            Ok(answer) => return Ok(serde_json::from_slice(&answer)?),
            Err(error) => {
                let was_refused = error.to_string().starts_with("request failed");
                if was_refused || Instant::now() > deadline {
                    return Err(error);
                }
                thread::sleep(Duration::from_millis(1));
            }
        }
    }
}

/// Runs commands in app-servers, and kills some of them, until it is told to stop.
pub(super) fn codex(program: &Path, mark: &str, (tally, kills): (&Tally, bool), stop: &AtomicBool) {
    let mark = format!("{mark}-codex");
    for nth in 0.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        match codex_once(program, &mark, kills.then_some(nth)) {
            Ok(bytes) => {
                tally.ran("codex", bytes);
                tally.lock().app_servers_killed += u64::from(kills);
            }
            Err(error) => tally.wrong_at(&format!("codex job {nth}"), &format!("{error:#}")),
        }
    }
}

fn codex_once(program: &Path, mark: &str, kill: Option<u64>) -> Result<u64> {
    const BYTES: u64 = 300_000;
    let mut command = Command::new(program);
    command.env(MARK, mark).env("LASTBYTE_LOG", "warn");
    let mut server = codex::Server::start_with(command, &[])?;
    let write = format!("yes 'a line' | head -c {BYTES}; exit 7");
    let params = json!({ "command": ["sh", "-c", write] }).to_string();
    let answer = server.ask("command/exec", &params)?;
    let result = &answer["result"];
    ensure!(result["exitCode"] == 7, "unexpected answer: {answer:.200}");
    let wanted: String = "a line\n".chars().cycle().take(BYTES as usize).collect();
    ensure!(result["stdout"] == wanted, "wrong output of command/exec");
    let Some(nth) = kill else { return Ok(BYTES) };
    let params = json!({ "command": ["sh", "-c", "setsid sleep 60 & sleep 60"] }).to_string();
    server.send("command/exec", &params)?;
    let sleepers = || {
        let marked = marked(mark).into_iter();
        marked.filter(|process| process.command().starts_with("sleep")).count()
    };
    wait_until(PATIENCE, || sleepers() == 2).context("the commands did not start")?;
    let worker = server::worker_of(server.pid()).filter(|_| nth % 2 == 0);
    server::kill(worker.unwrap_or(server.pid()))?;
    let gone = wait_until(OUTLIVES, || sleepers() == 0);
    let left: Vec<String> = marked(mark).iter().map(proc::Process::command).collect();
    kill_marked(mark);
    gone.with_context(|| format!("the app-server was killed, and these live on: {left:?}"))?;
    Ok(BYTES)
}

fn wait_until(limit: Duration, is_so: impl Fn() -> bool) -> Result<()> {
    let deadline = Instant::now() + limit;
    while !is_so() {
        ensure!(Instant::now() < deadline, "not within {limit:?}");
        thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// The live processes with this mark.
pub(crate) fn marked(mark: &str) -> Vec<proc::Process> {
    let entry = format!("{MARK}={mark}");
    let has_mark = |process: &proc::Process| {
        !process.is_zombie() && proc::environment_has(process.pid, |other| other == entry)
    };
    proc::all().filter(has_mark).collect()
}

pub(super) fn kill_marked(mark: &str) {
    for process in marked(mark) {
        // It may be gone by now.
        _ = server::kill(process.pid);
    }
}

/// Reads the feed until it is told to stop: no event comes twice, and none is missing unless that is
/// said.
pub(super) async fn events(client: &Client, tally: &Tally, stop: &AtomicBool) -> Result<()> {
    let mut events = again(|| client.events(None)).await?;
    let (mut told, mut last) = (HashSet::new(), None);
    while !stop.load(Ordering::Relaxed) {
        let next = tokio::time::timeout(Duration::from_millis(200), events.next());
        match next.await {
            Err(_) => {}
            Ok(Ok(News::Gap)) => {
                tally.lock().gaps += 1;
                last = None;
            }
            Ok(Ok(News::Event { id, event })) => {
                tally.lock().events += 1;
                let number = id.split_once('-').and_then(|(_, number)| number.parse::<u64>().ok());
                let number = number.with_context(|| format!("event {id} has no number"))?;
                ensure!(
                    last.is_none_or(|last| number == last + 1),
                    "event {id} follows number {last:?}"
                );
                last = Some(number);
                let what = (event.process, event.event.name());
                ensure!(!told.contains(&what), "event {id}: {what:?} was told before");
                told.insert(what);
            }
            Ok(Err(error)) if is_away(&error) => pause().await,
            Ok(Err(error)) => return Err(error.into()),
        }
    }
    Ok(())
}
