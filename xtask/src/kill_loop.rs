//! `cargo xtask kill-loop`: kills the server at random instants while clients use it, and checks that
//! no process, byte, ending, key or cursor is lost.
//!
//! Clients run commands of every kind ([`job`]) over the native API ([`client`], [`reader`]) and the
//! other doors ([`doors`]). Each knows what its command writes and how it ends, goes on where it was
//! cut off, and counts what is wrong ([`tally`]). What is killed is the worker of a keeper
//! ([`server`]). In the end nothing may be left ([`leftovers`]).
//!
//! The seed decides what each client runs and when a kill comes. The instants themselves are as
//! random as the machine, so a seed repeats the work of a run, not its races.
#![expect(clippy::print_stdout, reason = "prints figures")]
#![expect(
    clippy::disallowed_methods,
    reason = "it kills at instants, and starts servers as a user"
)]

mod client;
pub(crate) mod doors;
mod job;
pub(crate) mod leftovers;
pub(crate) mod proc;
mod reader;
mod secret;
mod server;
mod tally;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use lastbyte_client::Client;
use lastbyte_client::wire::ListQuery;
use tokio::runtime::Runtime;

use crate::bench::program;
use crate::bench::samples::Samples;
use crate::random::Random;
use client::Kept;
pub(crate) use client::{Native, again};
use job::LABEL;
pub(crate) use job::{Commands, Job};
use leftovers::Idle;
pub(crate) use proc::children_of;
pub(crate) use server::{Disk, Server, kill, worker_of};
pub(crate) use tally::{Counts, Tally};

const USAGE: &str = "usage: cargo xtask kill-loop [--kills N] [--seed S] [--upgrade] [--clients N] \
                     [--every-ms MEAN] [--program PATH]";

/// The keeper pauses after this many workers in a row that did not serve for `STEADY`. The loop avoids
/// the pause, in which nothing happens.
const CRASH_LOOP: u64 = 5;
const STEADY: Duration = Duration::from_secs(1);
const MOST_IN_A_ROW: u64 = 3;

/// What a run does to a server.
pub(crate) struct Options {
    pub(crate) kills: u64,
    /// Stop before all kills are done.
    pub(crate) deadline: Option<Instant>,
    pub(crate) seed: u64,
    /// Upgrade the server instead of killing it.
    pub(crate) upgrade: bool,
    pub(crate) clients: u64,
    /// Between two kills, on average.
    pub(crate) every: Duration,
    pub(crate) program: Option<PathBuf>,
}

/// Returns failure if anything is wrong.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    // As our programs do, before the first thread.
    lastbyte_sys::own_signals::prepare_for_children();
    let options = Options::parse(arguments)?;
    // Commands run elsewhere.
    let given = options.program.as_ref().map(|program| program.canonicalize()).transpose()?;
    let program = given.map_or_else(program::lastbyte_for_tests, Ok)?;
    let server = Arc::new(Server::start(&program, options.upgrade, Disk::Usual)?);
    let tally = Arc::new(Tally::default());
    let is_right = run_against(&options, &program, &server, &tally)?;
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs everything against this server, shuts it down and prints the result. Returns whether nothing is
/// wrong.
pub(crate) fn run_against(
    options: &Options,
    program: &Path,
    server: &Arc<Server>,
    tally: &Arc<Tally>,
) -> Result<bool> {
    if !server.has_keeper() {
        println!("kill-loop: the server has no keeper: a kill loses what runs");
    }
    let begun = Instant::now();
    let commands = Commands::new(program, server);
    let times = under_load(options, (program, &commands), server, tally)?;
    shut_down(server, tally);
    tally.check_runs(&std::fs::read_to_string(&commands.ran).unwrap_or_default());
    let log = std::fs::read_to_string(server.log()).unwrap_or_default();
    report(options, begun.elapsed(), times, &tally.lock());
    let is_right = tally.lock().wrong.is_empty();
    if !is_right && !log.is_empty() {
        println!("  the server said\n{}", log.lines().take(40).collect::<Vec<_>>().join("\n"));
    }
    Ok(is_right)
}

/// Ends the server, and checks that nothing of it is left.
pub(crate) fn shut_down(server: &Server, tally: &Tally) {
    if let Err(error) = server.shut_down() {
        tally.wrong_at("the shutdown", &format!("{error:#}"));
    }
    leftovers::check_gone(server, tally);
}

/// Kills the server while clients use it, lets them finish, and checks what is left. Returns how long
/// each take-over took.
fn under_load(
    options: &Options,
    (program, commands): (&Path, &Commands),
    server: &Arc<Server>,
    tally: &Arc<Tally>,
) -> Result<Vec<Duration>> {
    let (runtime, stop) = (Runtime::new()?, Arc::new(AtomicBool::new(false)));
    let idle = Idle::measure(server);
    let clients: Vec<_> = (0..options.clients)
        .map(|client| {
            let address = if client.is_multiple_of(2) { server.unix() } else { server.tcp() };
            let native = Native::new(address, Arc::clone(tally));
            let (stop, commands) = (Arc::clone(&stop), commands.clone());
            let random = Random::new(options.seed, client);
            runtime
                .spawn(async move { run_jobs(&native, client, random, (&commands, &stop)).await })
        })
        .collect();
    let feed = {
        let (client, tally, stop) =
            (Client::to(server.tcp()), Arc::clone(tally), Arc::clone(&stop));
        runtime.spawn(async move {
            if let Err(error) = doors::events(&client, &tally, &stop).await {
                tally.wrong_at("the feed of events", &format!("{error:#}"));
            }
        })
    };
    let times = thread::scope(|scope| {
        let mut random = Random::new(options.seed, u64::MAX);
        scope.spawn(|| {
            doors::coder(server, tally, &mut Random::new(options.seed, u64::MAX - 1), &stop);
        });
        scope.spawn(|| doors::codex(program, &server.mark, (tally, options.kills > 0), &stop));
        let times = kill_at_random(options, server, tally, &mut random);
        stop.store(true, Ordering::Relaxed);
        times
    });
    let kept: Vec<Kept> = runtime.block_on(async {
        let mut kept = Vec::new();
        for client in clients {
            kept.extend(client.await.unwrap_or_default());
        }
        _ = feed.await;
        kept
    });
    let native = Native::new(server.unix(), Arc::clone(tally));
    runtime.block_on(async {
        for kept in &kept {
            native.check_again(kept).await;
        }
        check_none_left(&native.client, tally).await
    })?;
    drop((native, runtime));
    idle.check(server, tally);
    Ok(times)
}

async fn run_jobs(
    native: &Native,
    client: u64,
    mut random: Random,
    (commands, stop): (&Commands, &AtomicBool),
) -> Vec<Kept> {
    let mut kept = Vec::new();
    let mut nth = 0;
    while !stop.load(Ordering::Relaxed) {
        let job = Job::new(commands, client, nth, &mut random);
        // What is random while it runs does not change which jobs come next.
        let mut meanwhile = random.clone();
        kept.extend(native.run(job, nth, &mut meanwhile).await);
        nth += 1;
    }
    kept
}

/// Returns the times from a kill to the first answer.
fn kill_at_random(
    options: &Options,
    server: &Server,
    tally: &Tally,
    random: &mut Random,
) -> Vec<Duration> {
    let mut times = Vec::new();
    if options.kills == 0 {
        // As long as the default takes, without a kill.
        thread::sleep(options.every * 10);
    }
    let (mut nth, mut early, mut answered) = (0, 0, Instant::now());
    while nth < options.kills && !options.is_over() {
        thread::sleep(options.until_over().min(random.exponential(options.every)));
        if early + MOST_IN_A_ROW >= CRASH_LOOP {
            thread::sleep(STEADY.saturating_sub(answered.elapsed()));
        }
        // Some kills come in a row: during the take-over that the one before began, or right after.
        let in_a_row = if random.percent(25) { random.between(2, MOST_IN_A_ROW + 1) } else { 1 };
        for left in (0..in_a_row.min(options.kills - nth)).rev() {
            early = if answered.elapsed() >= STEADY { 0 } else { early + 1 };
            let (before, begun) = (server.serving(), Instant::now());
            let mut result = server.kill(nth);
            nth += 1;
            if result.is_ok() && left > 0 && random.percent(70) {
                server.until_another_than(before);
                answered = Instant::now();
                thread::sleep(Duration::from_micros(random.between(0, 30_000)));
                continue;
            }
            result = result.and_then(|()| server.until_answered());
            if let Err(error) = result {
                tally.wrong_at(&format!("kill {nth}"), &format!("{error:#}"));
                return times;
            }
            tally.lock().kills += 1;
            answered = Instant::now();
            times.push(begun.elapsed());
            if left > 0 {
                thread::sleep(Duration::from_micros(random.between(0, 300)));
            }
        }
    }
    times
}

/// Every process was forgotten by its client; another one was started twice, or though its client was
/// told that it was not.
async fn check_none_left(client: &Client, tally: &Tally) -> Result<()> {
    let query = ListQuery { limit: Some(ListQuery::MOST), ..ListQuery::default() };
    for process in again(|| client.list(&query)).await?.processes {
        let name = process.labels.get(LABEL).cloned().unwrap_or_default();
        let is_known =
            tally.lock().wrong.iter().any(|line| {
                line.starts_with(&format!("job {name} ")) || line.contains(&process.id)
            });
        if !is_known {
            let what =
                format!("{:?} is nobody's", process.command.or(process.shell.map(|s| vec![s])));
            tally.wrong_at(&format!("job {name} {}", process.id), &what);
        }
    }
    Ok(())
}

fn report(options: &Options, took: Duration, times: Vec<Duration>, counts: &Counts) {
    let (kills, seed) = (counts.kills, options.seed);
    let what = if options.upgrade { "upgrades" } else { "kills" };
    let processes: u64 = counts.processes.values().sum();
    println!("kill-loop: {kills} {what}, seed {seed}, {:.0} s", took.as_secs_f64());
    let each: Vec<String> =
        counts.processes.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    println!("  processes  {processes}: {}", each.join(", "));
    for (kind, count) in &counts.not_run {
        println!("  not run    {count} {kind}: this machine cannot");
    }
    println!("  bytes      {:.1} MB", counts.bytes as f64 / 1e6);
    println!(
        "  cut off    starts with a key: {} found their process; without: {} found, {} never started",
        counts.repeated, counts.found, counts.never
    );
    println!("  app-server {} killed, with their trees", counts.app_servers_killed);
    println!("  events     {}, {} stated gaps", counts.events, counts.gaps);
    if !times.is_empty() {
        let count = times.len();
        let times = Samples::new(times);
        let [p50, p99, most] =
            [0.5, 0.99, 1.0].map(|share| times.quantile(share).as_secs_f64() * 1e3);
        println!(
            "  take-over  p50 {p50:.1} ms, p99 {p99:.1}, max {most:.1} from the kill to an answer (n = {count})"
        );
    }
    println!("  wrong      {}", counts.wrong.len());
    for wrong in &counts.wrong {
        println!("    {wrong} (seed {seed})");
    }
}

impl Options {
    fn until_over(&self) -> Duration {
        self.deadline
            .map_or(Duration::MAX, |deadline| deadline.saturating_duration_since(Instant::now()))
    }

    fn is_over(&self) -> bool {
        self.until_over().is_zero()
    }

    fn parse(arguments: &[String]) -> Result<Self> {
        let mut own = Self {
            kills: 10,
            deadline: None,
            seed: 1,
            upgrade: false,
            clients: 8,
            every: Duration::from_millis(1500),
            program: None,
        };
        let mut rest = arguments.iter();
        while let Some(option) = rest.next() {
            if option == "--upgrade" {
                own.upgrade = true;
                continue;
            }
            let value = rest.next().context(USAGE)?;
            let number = || value.parse::<u64>().context(USAGE);
            match option.as_str() {
                "--kills" => own.kills = number()?,
                "--seed" => own.seed = number()?,
                "--clients" => own.clients = number()?,
                "--every-ms" => own.every = Duration::from_millis(number()?),
                "--program" => own.program = Some(value.into()),
                _ => bail!(USAGE),
            }
        }
        Ok(own)
    }
}
