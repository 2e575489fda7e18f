//! What the keeper costs a start, and how long commands and clients wait when the worker is killed.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::daemon::Daemon;
use super::program;
use super::samples::{Samples, WARM_UP, in_turn, timed};
use super::spawn::plain;
use super::wire::{Address, Connection, RUN_TRUE};
use crate::kill_loop::{kill, worker_of};

const ROUNDS: usize = 1000;
const SLEEPERS: usize = 1000;
const KILLS: usize = 11;
/// How long the flooding command writes, and when its worker is killed.
const FLOOD_SECONDS: u64 = 3;
const FLOODS: usize = 7;
/// More than the keeper calls a crash loop: it would pause.
const STEADY: Duration = Duration::from_millis(1100);

pub(super) fn run() -> Result<()> {
    let (alone, kept) = (Daemon::start()?, Daemon::start_with_keeper(program::lastbyte()?)?);
    memory(&kept)?;
    println!("keeper: start + wait of /bin/true in one call, without and with a keeper in turn");
    one_call(&alone.unix(), &kept.unix())?;
    one_call(&alone.tcp(), &kept.tcp())?;
    pause_of_a_flood(&kept)?;
    let ended = kill_and_ask(&kept)?;
    drop(kept);
    first_answer(&Daemon::start_with_keeper(program::lastbyte()?)?)?;
    let count = 2 * (WARM_UP + ROUNDS);
    print_spread(&format!("nothing runs, {count} have ended and are kept"), ended);
    Ok(())
}

fn one_call(alone: &Address, kept: &Address) -> Result<()> {
    let [mut connection, mut with_keeper] = [Connection::open(alone)?, Connection::open(kept)?];
    let [without, with, floor] = in_turn(WARM_UP, ROUNDS, || {
        let without = timed(|| connection.post("/v1/processes", RUN_TRUE))?;
        let with = timed(|| with_keeper.post("/v1/processes", RUN_TRUE))?;
        Ok([without, with, plain()?])
    })?;
    println!("  {kept}");
    println!("    floor    {floor}");
    println!("    without  {without}");
    println!("    with     {with}");
    let more = with.median().as_secs_f64() - without.median().as_secs_f64();
    let of = more / floor.median().as_secs_f64();
    println!("    {:+.1} µs, {of:.3} of the floor (aim: at most +5 µs)", more * 1e6);
    Ok(())
}

/// Of keeper, worker and stand-in, with pages that they share counted once.
fn memory(kept: &Daemon) -> Result<()> {
    println!("keeper: memory of a fresh server");
    let mut sum = 0;
    for (what, pid) in kept.processes()? {
        let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
        let field = |name: &str| -> Result<u64> {
            let line = rollup.lines().find_map(|line| line.strip_prefix(name));
            let number = line.and_then(|rest| rest.split_ascii_whitespace().next());
            Ok(number.with_context(|| format!("no {name}"))?.parse::<u64>()? * 1024)
        };
        let (shared, own) = (field("Pss:")?, field("Private_Dirty:")? + field("Private_Clean:")?);
        sum += shared;
        let megabytes = |bytes: u64| bytes as f64 / 1e6;
        println!("  {:4.1} MB, {:.2} of its own: {what}", megabytes(shared), megabytes(own));
    }
    println!("  {:4.1} MB together (aim: at most 10)", sum as f64 / 1e6);
    Ok(())
}

/// The longest write of a command that floods its output while its worker is killed, and of one
/// whose worker lives.
fn pause_of_a_flood(kept: &Daemon) -> Result<()> {
    let mut times = [Vec::new(), Vec::new()];
    for nth in 0..FLOODS * 2 {
        let kills = nth % 2 == 1;
        times[usize::from(kills)].push(longest_write(kept, kills)?);
    }
    println!("keeper: the longest write of a command that floods for {FLOOD_SECONDS} s");
    for (what, times) in ["the worker lives", "the worker is killed"].into_iter().zip(times) {
        print_spread(what, times);
    }
    Ok(())
}

fn longest_write(kept: &Daemon, kills: bool) -> Result<Duration> {
    let program = std::env::current_exe()?;
    let mut connection = Connection::open(&kept.unix())?;
    let program = program.to_str().context("a path that is not UTF-8")?;
    let body = serde_json::json!({
        "command": [program, "longest-write", FLOOD_SECONDS.to_string()],
        "streams": "split",
    });
    let id = connection.start(&body.to_string())?;
    if kills {
        thread::sleep(STEADY);
        kill(kept.worker()?)?;
        until_answered(&kept.unix())?;
        connection = Connection::open(&kept.unix())?;
    }
    connection.post(&format!("/v1/processes/{id}/wait"), r#"{"exit":true}"#)?;
    let said =
        connection.get(&format!("/v1/processes/{id}/output?view=raw&stream=stderr&from=0"))?;
    connection.delete(&format!("/v1/processes/{id}"))?;
    let nanos = String::from_utf8_lossy(&said).trim().parse().context("no time on stderr")?;
    Ok(Duration::from_nanos(nanos))
}

/// The command: writes for this many seconds, then prints to stderr how many nanoseconds the longest
/// write took.
pub(crate) fn write_and_time(seconds: &str) -> Result<()> {
    let (end, block) = (Instant::now() + Duration::from_secs(seconds.parse()?), [b'x'; 4096]);
    let (mut stdout, mut longest) = (std::io::stdout().lock(), Duration::ZERO);
    while Instant::now() < end {
        longest = longest.max(timed(|| Ok(stdout.write_all(&block)?))?);
    }
    writeln!(std::io::stderr(), "{}", longest.as_nanos())?;
    Ok(())
}

/// From a kill of the worker to the first answer of the next one, which takes over many processes.
fn first_answer(kept: &Daemon) -> Result<()> {
    let few = kill_and_ask(kept)?;
    let mut connection = Connection::open(&kept.unix())?;
    for _ in 0..SLEEPERS {
        connection.start(r#"{"command":["sleep","3600"]}"#)?;
    }
    let many = kill_and_ask(kept)?;
    println!("keeper: from a kill of the worker to the first answer");
    print_spread("nothing runs", few);
    print_spread(&format!("{SLEEPERS} processes run (aim: at most 100 ms)"), many);
    let answer = Connection::open(&kept.unix())?.get("/v1/processes?phase=running&limit=1000")?;
    let answer: serde_json::Value = serde_json::from_slice(&answer)?;
    let left = answer["processes"].as_array().map_or(0, Vec::len);
    ensure!(left == SLEEPERS, "{left} processes run on instead of {SLEEPERS}");
    Ok(())
}

fn kill_and_ask(kept: &Daemon) -> Result<Vec<Duration>> {
    let once = |_| {
        thread::sleep(STEADY);
        // A look at each child of the keeper, which may have adopted a thousand.
        let worker = kept.worker()?;
        let begun = Instant::now();
        kill(worker)?;
        until_answered(&kept.unix())?;
        Ok(begun.elapsed())
    };
    (0..KILLS).map(once).collect()
}

/// A connection that the dead worker had accepted breaks.
fn until_answered(address: &Address) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(60);
    while Connection::open(address).and_then(|mut it| it.get("/v1")).is_err() {
        ensure!(Instant::now() < deadline, "no answer within 60 s");
        thread::yield_now();
    }
    Ok(())
}

fn print_spread(what: &str, times: Vec<Duration>) {
    let times = Samples::new(times);
    let [least, median, most] = [0.0, 0.5, 1.0].map(|share| times.quantile(share).as_secs_f64());
    let [least, median, most] = [least, median, most].map(|seconds| seconds * 1e3);
    println!("  {median:6.1} ms ({least:.1} to {most:.1}): {what}");
}

impl Daemon {
    /// With a keeper; shuts down when it is dropped.
    fn start_with_keeper(program: std::path::PathBuf) -> Result<Self> {
        let mut command = Command::new(program);
        // It says whenever its worker is killed.
        command.stderr(Stdio::null());
        Self::start_as(command, &["serve"])
    }

    fn worker(&self) -> Result<u32> {
        worker_of(self.pid()).context("no worker")
    }

    fn processes(&self) -> Result<[(&'static str, u32); 3]> {
        let (keeper, worker) = (self.pid(), self.worker()?);
        let children = crate::kill_loop::children_of(keeper);
        let stand_in = children.into_iter().find(|child| child.pid != worker);
        let stand_in = stand_in.context("no stand-in")?.pid;
        Ok([("keeper", keeper), ("worker", worker), ("stand-in", stand_in)])
    }
}
