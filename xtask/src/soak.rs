//! `cargo xtask soak --minutes N`: the load of kill-loop for a long time, and every minute a look at what
//! could grow.
//!
//! Two servers run. On one, clients of all doors run commands of every kind, the worker is killed every
//! now and then, and other clients stop reading and are killed ([`dying_clients`]). The state directory of
//! the second is on a small disk that is filled and emptied again and again ([`small_disk`]); nothing of
//! it is killed, so that its memory shows what it gathers. Their memory, descriptors, disk space
//! and processes are measured every ten seconds ([`sample`]); the report has them as charts ([`report`]).
#![expect(clippy::print_stdout, reason = "prints results")]
#![expect(
    clippy::disallowed_methods,
    reason = "it measures at intervals, and starts clients as a user"
)]

mod dying_clients;
mod report;
mod sample;
mod small_disk;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::bench::program;
use crate::kill_loop::{self, Disk, Server, Tally};
use crate::random::Random;
use report::Report;
use sample::Watched;

const USAGE: &str = "usage: cargo xtask soak [--minutes N] [--seed S] [--clients N] [--every-ms MEAN] \
                     [--out DIR] [--program PATH]";
const SAMPLE_EVERY: Duration = Duration::from_secs(10);
const CHECK_EVERY: u32 = 6;
const SMALL_DISK_MIB: u64 = 64;

struct Options {
    load: kill_loop::Options,
    minutes: u64,
    out: PathBuf,
}

/// Returns failure if anything is wrong.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    // As our programs do, before the first thread.
    lastbyte_sys::own_signals::prepare_for_children();
    let mut options = Options::parse(arguments)?;
    let program = options.load.program.clone().map_or_else(program::lastbyte, Ok)?;
    let tally = Arc::new(Tally::default());
    let usual = Arc::new(Server::start(&program, false, Disk::Usual)?);
    let small = Server::start(&program, false, Disk::Small(SMALL_DISK_MIB))
        .inspect_err(|error| println!("not run: a disk that fills: {error:#}"))
        .ok();
    let begun = Instant::now();
    let deadline = begun + Duration::from_secs(60 * options.minutes);
    options.load.deadline = Some(deadline);
    let mut report = Report::new(&options.out, small.is_some())?;
    let done = thread::scope(|scope| {
        scope.spawn(|| dying_clients::run(&program, &usual, (&tally, options.load.seed), deadline));
        if let Some(small) = &small {
            scope.spawn(|| small_disk::run(&program, small, (&tally, options.load.seed), deadline));
        }
        let watcher = scope.spawn(|| {
            watch([Some(&*usual), small.as_ref()], &tally, &mut report, (begun, deadline))
        });
        let done = kill_loop::run_against(&options.load, &program, &usual, &tally);
        watcher.join().map_err(|_| anyhow::anyhow!("the watcher panicked"))??;
        done
    });
    if let Some(small) = &small {
        kill_loop::shut_down(small, &tally);
    }
    done?;
    report.check_growth(&tally);
    report.write(&tally.lock(), begun.elapsed())?;
    let wrong = &tally.lock().wrong;
    println!(
        "soak: {} wrong; the report is {}",
        wrong.len(),
        options.out.join("report.md").display()
    );
    wrong.iter().for_each(|what| println!("  {what}"));
    Ok(if wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Measures the servers until the deadline, and checks and prints what it finds once a minute.
fn watch(
    servers: [Option<&Server>; 2],
    tally: &Tally,
    report: &mut Report,
    (begun, deadline): (Instant, Instant),
) -> Result<()> {
    let mut watched = servers.map(|server| server.map(Watched::new));
    for nth in 1u32.. {
        let next = begun + SAMPLE_EVERY * nth;
        if next > deadline {
            return Ok(());
        }
        thread::sleep(next.saturating_duration_since(Instant::now()));
        let samples = watched.each_mut().map(|one| one.as_mut().map(|one| one.sample(tally)));
        report.add(begun.elapsed(), samples, &tally.lock());
        if nth.is_multiple_of(CHECK_EVERY) {
            println!("{}", report.last_line());
            report.write(&tally.lock(), begun.elapsed())?;
        }
    }
    Ok(())
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Self> {
        let mut minutes = 10;
        let mut out = PathBuf::from("target/soak");
        let mut load = kill_loop::Options {
            kills: u64::MAX,
            deadline: None,
            seed: 1,
            upgrade: false,
            clients: 8,
            every: Duration::from_secs(20),
            program: None,
        };
        let mut rest = arguments.iter();
        while let Some(option) = rest.next() {
            let value = rest.next().context(USAGE)?;
            let number = || value.parse::<u64>().context(USAGE);
            match option.as_str() {
                "--minutes" => minutes = number()?,
                "--seed" => load.seed = number()?,
                "--clients" => load.clients = number()?,
                "--every-ms" => load.every = Duration::from_millis(number()?),
                "--out" => out = value.into(),
                "--program" => load.program = Some(value.into()),
                _ => bail!(USAGE),
            }
        }
        Ok(Self { load, minutes, out })
    }
}

/// Streams of random choices besides those of kill-loop.
fn random(seed: u64, stream: u64) -> Random {
    Random::new(seed, u64::MAX / 2 + stream)
}
