//! How commands fare beside others that use up something, each with the limit that stops it.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::daemon::Daemon;
use super::program;
use super::samples::{Samples, timed};
use super::wire::{Connection, RUN_TRUE};

/// At least so many starts beside each hog, which is started again until there are as many.
const SAMPLES: usize = 1000;
const PATIENCE: Duration = Duration::from_secs(120);

struct Hog {
    what: &'static str,
    /// The program, and what it does.
    testchild: String,
    actions: String,
    limits: Value,
    /// The limit that its ending names; `None` if the kernel only refuses it more.
    cause: Option<&'static str>,
}

/// Starts of others, without the hog and beside it.
#[derive(Default)]
struct Times {
    idle: Vec<Duration>,
    beside: Vec<Duration>,
    hogs: usize,
}

pub(super) fn run() -> Result<()> {
    let daemon = Daemon::start()?;
    let folder = tempfile::tempdir()?;
    let load = fs::read_to_string("/proc/loadavg")?;
    let load = load.split(' ').next().unwrap_or_default();
    println!(
        "limits: start + wait of /bin/true beside a hog, in turn with none; load {load} before"
    );
    let testchild = program::testchild()?.display().to_string();
    for hog in hogs(&testchild, &folder.path().join("file").display().to_string()) {
        let times = measure(&daemon, &hog).with_context(|| hog.what)?;
        let (idle, beside) = (Samples::new(times.idle), Samples::new(times.beside));
        let worst = |samples: &Samples| samples.quantile(0.99).as_secs_f64();
        println!(
            "  {}, {} times, stopped by {}",
            hog.what,
            times.hogs,
            hog.cause.unwrap_or("itself")
        );
        println!("    idle    {idle}");
        println!("    beside  {beside}");
        let p99 = worst(&beside) / worst(&idle);
        println!("    ratio   {:.2} at p50, {p99:.2} at p99", beside.ratio_to(&idle));
    }
    Ok(())
}

fn hogs(testchild: &str, file: &str) -> Vec<Hog> {
    let hog = |what, actions: &str, limits, cause| {
        let (testchild, actions) = (testchild.to_owned(), actions.to_owned());
        Hog { what, testchild, actions, limits, cause }
    };
    let memory = || json!({ "memory_bytes": 256 << 20 });
    vec![
        hog("nothing", "exit 0", json!({ "pids": 100 }), None),
        hog("fork bomb", "fork-bomb 490 then hold", json!({ "pids": 100 }), Some("pids")),
        hog("memory hog", "eat-memory", memory(), Some("memory")),
        hog("slow leak", "eat-memory 1", memory(), Some("memory")),
        hog("processor hog", "spin", json!({ "cpu_time_ms": 1000 }), Some("cpu_time")),
        hog("descriptor hog", "open-files", json!({ "open_files": 1000 }), None),
        hog(
            "file hog",
            &format!("grow-file {file}"),
            json!({ "file_size_bytes": 256 << 20 }),
            Some("file_size"),
        ),
    ]
}

/// As many starts after each hog as beside it.
fn measure(daemon: &Daemon, hog: &Hog) -> Result<Times> {
    let (mut others, mut times) = (Connection::open(&daemon.unix())?, Times::default());
    let run_true = |others: &mut Connection| timed(|| others.post("/v1/processes", RUN_TRUE));
    let deadline = Instant::now() + PATIENCE;
    while times.beside.len() < SAMPLES {
        ensure!(Instant::now() < deadline, "only {} starts beside it", times.beside.len());
        thread::scope(|scope| -> Result<()> {
            let hogging = scope.spawn(|| run_hog(daemon, hog));
            while !hogging.is_finished() {
                times.beside.push(run_true(&mut others)?);
            }
            hogging.join().expect("the hog's client panicked")
        })?;
        times.hogs += 1;
        while times.idle.len() < times.beside.len() {
            times.idle.push(run_true(&mut others)?);
        }
    }
    Ok(times)
}

/// Runs it to its end, which its limit must be the cause of. Nothing of it is left.
fn run_hog(daemon: &Daemon, hog: &Hog) -> Result<()> {
    let words = hog.actions.split(' ').map(str::to_owned);
    let command: Vec<String> = [hog.testchild.clone()].into_iter().chain(words).collect();
    let request = json!({ "command": command, "limits": hog.limits, "wait": { "exit": true } });
    let mut connection = Connection::open(&daemon.unix())?;
    let answer = connection.post("/v1/processes", &request.to_string())?;
    let answer: Value = serde_json::from_slice(&answer)?;
    let cause = &answer["process"]["ending"]["cause"];
    let which = cause["which"].as_str().filter(|_| cause["kind"] == "limit");
    ensure!(which == hog.cause, "it ended by {cause}");
    let id = answer["process"]["id"].as_str().context("no id")?;
    connection.post(&format!("/v1/processes/{id}/stop"), "")?;
    connection.delete(&format!("/v1/processes/{id}"))
}
