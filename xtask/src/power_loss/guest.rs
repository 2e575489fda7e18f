//! The client inside the virtual machine: looks at what the server shows after a boot, then uses it
//! until the power goes. It prints each step before it is taken and after it was answered.
#![expect(clippy::print_stdout, reason = "its console is how it reports")]
#![expect(clippy::disallowed_methods, reason = "it starts a server as a user, and paces the load")]

use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use lastbyte_client::Client;
use lastbyte_client::wire::{
    Cause, Ending, ForgetQuery, Kept, ListQuery, Met, OutputQuery, Phase, Process, Status, Stream,
    Streams, Wait,
};
use lastbyte_testkit::pattern_bytes;
use tokio::time::{sleep, timeout};

use super::MARK;
use super::job::Job;

const STATE: &str = "/disk/state";
const SOCKET: &str = "/disk/state/socket";
/// How many may run until the power goes.
const ENDLESS: u64 = 8;

struct Driver {
    client: Client,
    seed: u64,
    boot: u64,
    next: AtomicU64,
    endless: AtomicU64,
}

/// Runs until the power goes.
pub(crate) fn run() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(drive());
    if let Err(error) = &outcome {
        println!("{MARK} wrong the guest stops: {error:#}");
    }
    outcome
}

async fn drive() -> Result<()> {
    // The kernel gives init what it was started with as variables.
    let variable = |name| std::env::var(name).with_context(|| format!("no {name}"));
    let driver = Driver {
        client: Client::unix(SOCKET),
        seed: variable("seed")?.parse()?,
        boot: variable("boot")?.parse()?,
        next: AtomicU64::new(0),
        endless: AtomicU64::new(0),
    };
    let _server = Command::new("/bin/lastbyte")
        .args(["serve", "--state", STATE, "--socket", SOCKET])
        .env("LASTBYTE_LOG", "warn")
        .spawn()?;
    let answered = async {
        while driver.client.health().await.is_err() {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(Duration::from_secs(60), answered).await.context("the server does not start")?;
    driver.check(&variable("again").unwrap_or_default()).await?;
    let use_server = || driver.use_server();
    tokio::try_join!(use_server(), use_server(), use_server(), use_server(), use_server())?;
    Ok(())
}

impl Driver {
    /// Tells what the server shows, repeats starts of these jobs that have a key, and forgets most of
    /// what was shown.
    async fn check(&self, again: &str) -> Result<()> {
        let shown = self.list().await?;
        for process in &shown {
            let job = Job::from_process(self.seed, process).context("a process of nobody")?;
            let (name, id, phase) = (&job.name, &process.id, process.phase.as_str());
            if let Err(error) = self.check_process(&job, process).await {
                println!("{MARK} wrong {name} {id} ({phase}, {} bytes): {error:#}", process.total);
            }
            println!("{MARK} shown {name} {id} {phase} {}", process.dropped.len());
        }
        println!("{MARK} checked");
        for name in again.split(',').filter(|name| !name.is_empty()) {
            let job = Job::from_name(self.seed, name).context("an invalid name")?;
            if job.request.key.is_none() {
                continue;
            }
            let answer = self.client.start(&job.request).await?;
            let is_old = if answer.attached { "old" } else { "new" };
            println!("{MARK} key {name} {} {is_old}", answer.process.id);
        }
        for (process, nth) in shown.iter().zip(0u64..) {
            // Some stay for one more power loss.
            let job = Job::from_process(self.seed, process).context("a process of nobody")?;
            let is_young = job.name.starts_with(&format!("{}.", self.boot - 1));
            if !(is_young && nth.is_multiple_of(4)) {
                self.forget(&job, &process.id).await?;
            }
        }
        Ok(())
    }

    async fn list(&self) -> Result<Vec<Process>> {
        let (mut all, mut before) = (Vec::new(), None);
        loop {
            let limit = Some(ListQuery::MOST);
            let query = ListQuery { limit, before, ..ListQuery::default() };
            let answer = self.client.list(&query).await?;
            all.extend(answer.processes);
            before = answer.next;
            if before.is_none() {
                return Ok(all);
            }
        }
    }

    /// Whether everything that is shown of a process of an earlier boot is true.
    async fn check_process(&self, job: &Job, process: &Process) -> Result<()> {
        let ending = process.ending.as_ref().context("no ending")?;
        match process.phase {
            Phase::Ended => check_ended(job, process, ending)?,
            Phase::Lost => check_lost(ending)?,
            Phase::Running | Phase::Draining => bail!("it runs after a boot"),
        }
        let streams = match process.streams {
            Streams::Split => &[Some(Stream::Stdout), Some(Stream::Stderr)][..],
            Streams::Merged | Streams::Tty => &[None],
        };
        for stream in streams {
            let read = self.check_output(job, process, *stream).await;
            read.with_context(|| format!("output {stream:?}"))?;
        }
        Ok(())
    }

    async fn check_output(
        &self,
        job: &Job,
        process: &Process,
        stream: Option<Stream>,
    ) -> Result<()> {
        let (mut at, mut count) = (0, 0);
        while at < process.total {
            let query = OutputQuery {
                from: Some(at.cast_signed()),
                stream,
                max_bytes: Some(1 << 18),
                ..OutputQuery::default()
            };
            let piece = self.client.raw(&process.id, &query).await?;
            // Where one of two streams goes on after a gap cannot be told.
            if stream.is_some() && !process.dropped.is_empty() {
                return Ok(());
            }
            let from = job.base + if stream.is_some() { count } else { piece.from };
            count += piece.bytes.len() as u64;
            let wanted = pattern_bytes(from..from + piece.bytes.len() as u64);
            if let Some(first) = (0..wanted.len()).find(|at| piece.bytes[*at] != wanted[*at]) {
                let wrong = &piece.bytes[first..];
                let zeros = wrong.iter().take_while(|byte| **byte == 0).count();
                let first = piece.from + first as u64;
                bail!("wrong from {first} on: {} bytes, {zeros} zeros first", wrong.len());
            }
            ensure!(piece.next > at, "no progress at {at} of {}", process.total);
            at = piece.next;
        }
        let wanted = job.bytes.filter(|_| process.phase == Phase::Ended);
        let is_all = process.dropped.is_empty() && stream.is_some();
        ensure!(!is_all || wanted.is_none_or(|wanted| wanted == count), "{count} bytes");
        Ok(())
    }

    /// One command after the other.
    async fn use_server(&self) -> Result<()> {
        loop {
            let nth = self.next.fetch_add(1, Ordering::Relaxed);
            let job = Job::new(self.seed, self.boot, nth);
            let is_endless = job.bytes.is_none();
            if is_endless && self.endless.fetch_add(1, Ordering::Relaxed) >= ENDLESS {
                continue;
            }
            println!("{MARK} start {}", job.name);
            let id = self.client.start(&job.request).await?.process.id;
            println!("{MARK} started {} {id}", job.name);
            if is_endless {
                continue;
            }
            let wait = Wait { exit: Some(true), ..Wait::default() };
            let answer = self.client.wait(&id, &wait).await?;
            ensure!(answer.wait == Met::Exit, "{}: {:?}", job.name, answer.wait);
            let ending = answer.process.ending.as_ref().context("no ending")?;
            check_ended(&job, &answer.process, ending).with_context(|| job.name.clone())?;
            println!("{MARK} ended {} {id}", job.name);
            if job.is_forgotten {
                self.forget(&job, &id).await?;
            }
            sleep(Duration::from_millis(100)).await;
        }
    }

    async fn forget(&self, job: &Job, id: &str) -> Result<()> {
        println!("{MARK} forget {} {id}", job.name);
        self.client.forget(id, &ForgetQuery::default()).await?;
        Ok(())
    }
}

/// The ending is the true one, and says so if output is missing.
fn check_ended(job: &Job, process: &Process, ending: &Ending) -> Result<()> {
    ensure!(ending.status == Status::Exited { code: job.code }, "{:?}", ending.status);
    ensure!(ending.cause == Some(Cause::Own), "{:?}", ending.cause);
    let streams = if process.streams == Streams::Split { 2 } else { 1 };
    let wanted = job.bytes.map(|bytes| bytes * streams);
    ensure!(wanted.is_none_or(|wanted| wanted == ending.final_len), "{} bytes", ending.final_len);
    let is_whole = ending.kept == Some(Kept::Whole);
    ensure!(is_whole == process.dropped.is_empty(), "{:?}: {:?}", ending.kept, process.dropped);
    Ok(())
}

/// Nothing is claimed that nobody saw.
fn check_lost(ending: &Ending) -> Result<()> {
    let Ending { status, cause, closing, kept, times, usage, .. } = ending;
    ensure!(matches!(status, Status::Lost { running_pid: None, .. }), "{status:?}");
    let is_silent = cause.is_none() && closing.is_none() && kept.is_none() && usage.is_none();
    ensure!(is_silent, "made up: {ending:?}");
    let seen = [times.exited_unix_ns, times.ended_unix_ns, times.ran_ns, times.drained_ns];
    ensure!(seen == [None; 4] && times.found_unix_ns.is_some(), "made up: {times:?}");
    Ok(())
}
