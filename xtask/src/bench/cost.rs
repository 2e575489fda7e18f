//! `cargo xtask cost`: counts what one command costs lastbyte.
//!
//! It counts the system calls, context switches and allocations of the server for each command, not
//! of the command itself, so that the cost does not grow a little with every change. Startup counts
//! only for `lastbyte run`. What depends on the machine does not count: involuntary switches, and
//! the thread that works by a timer.

mod door;
mod own_cgroup;
mod preload;
mod record;
mod trace;

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use rustix::process::geteuid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::program;
use door::{Door, Meters};
use own_cgroup::OwnCgroup;
use record::{Changes, Row};
use trace::Trace;

/// The thread that reaps orphans, at most ten times a second for any number of commands.
const TIMER_THREAD: &str = "orphans";

/// What one command costs.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cost {
    system_calls: f64,
    /// Only voluntary ones; the others depend on how busy the machine is.
    context_switches: f64,
    allocations: f64,
}

/// Prints the counts; with `--check` compares them with the record, with `--record` writes it.
pub(crate) fn cost(options: &[String]) -> Result<ExitCode> {
    let (mut check, mut record, mut given) = (false, false, None);
    let mut options = options.iter();
    while let Some(option) = options.next() {
        match (option.as_str(), options.as_slice()) {
            ("--check", _) => check = true,
            ("--record", _) => record = true,
            ("--program", [path, ..]) => {
                given = Some(PathBuf::from(path));
                options.next();
            }
            _ => bail!("usage: cargo xtask cost [--check | --record] [--program PATH]"),
        }
    }
    if let Some(why) = unavailable() {
        not_run(&why)?;
        return Ok(ExitCode::SUCCESS);
    }
    let program = match given {
        Some(program) => program,
        None => program::lastbyte_for_tests()?,
    };
    let rows = measure(&program)?;
    if !rows.iter().any(|row| row.door == Door::Run) {
        not_run("`lastbyte run` is for root with cgroups: its start depends on the user")?;
    }
    if record {
        println!("recorded in {}", record::replace(rows)?.display());
        return Ok(ExitCode::SUCCESS);
    }
    Ok(if check { report(&record::compare(&rows, &record::read()?)) } else { ExitCode::SUCCESS })
}

fn unavailable() -> Option<String> {
    match std::env::consts::ARCH {
        "x86_64" => Trace::unavailable(),
        other => Some(format!("the figures are of x86_64, this is {other}")),
    }
}

fn measure(program: &Path) -> Result<Vec<Row>> {
    on_two_processors()?;
    let folder = tempfile::tempdir()?;
    let cgroup = OwnCgroup::enter();
    let has_cgroups = cgroup.is_ok();
    // At its start a program looks up its user, for instance, which takes a different path for each
    // user.
    let with_start = has_cgroups && geteuid().is_root();
    let doors = if with_start { &Door::ALL[..] } else { &Door::SERVERS[..] };
    let meters = Meters::new(program, folder.path())?;
    println!("cgroups    door   system calls  context switches  allocations");
    let mut rows = Vec::new();
    for &door in doors {
        let row = Row { has_cgroups, door, cost: door.measure(&meters)? };
        println!("{row}");
        rows.push(row);
    }
    Ok(rows)
}

/// A server has threads for each core, so this sets the same number on every machine.
fn on_two_processors() -> Result<()> {
    let may_use = sched_getaffinity(None)?;
    let mut two = CpuSet::new();
    for processor in (0..CpuSet::MAX_CPU).filter(|one| may_use.is_set(*one)).take(2) {
        two.set(processor);
    }
    Ok(sched_setaffinity(None, &two)?)
}

/// Prints what changed, and fails if something grew.
fn report(Changes { grown, fallen }: &Changes) -> ExitCode {
    if !fallen.is_empty() {
        println!("cost: less than recorded; lower the record with `cargo xtask cost --record`:");
        println!("  {}", fallen.join("\n  "));
    }
    if grown.is_empty() {
        println!("cost: no more than recorded");
        return ExitCode::SUCCESS;
    }
    println!("cost: a command costs more than recorded in xtask/cost.txt:");
    println!("  {}", grown.join("\n  "));
    println!("If the change is worth it, record the new figures with `cargo xtask cost --record`");
    println!("and give the reason in the commit.");
    ExitCode::FAILURE
}

/// Reports it to the user and to `./test`.
fn not_run(why: &str) -> Result<()> {
    let line = format!("not run: cost of a command: {why}");
    println!("{line}");
    if let Some(path) = std::env::var_os("LASTBYTE_TEST_NOT_RUN") {
        writeln!(OpenOptions::new().append(true).open(path)?, "{line}")?;
    }
    Ok(())
}
