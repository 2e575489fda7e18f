//! Killing a tree of a thousand processes with each reach, and the cost of a cgroup for each start.

use std::time::{Duration, Instant};

use anyhow::Result;
use lastbyte_engine::{Engine, Launch, Reach, ReachChoice, Settings, StopPolicy, Survivors, Verb};
use rustix::process::{Pid, Signal, kill_process};
use tokio::runtime::Runtime;

use super::samples::{Samples, WARM_UP, in_turn};
use super::spawn::start_and_wait;

const KILLS: usize = 5;
const STARTS: usize = 1000;
const ENDED: usize = 1000;

/// A third plain, a third in their own sessions, a third also orphaned.
const TREE: &str = "i=0; while [ $i -lt 333 ]; do \
                    sleep 600 & setsid sleep 600 & (setsid sleep 600 &); \
                    i=$((i+1)); done; exec sleep 600";
const MEMBERS: usize = 1000;

pub(super) fn run() -> Result<()> {
    let runtime = Runtime::new()?;
    kills(&runtime)?;
    starts(&runtime)?;
    closes(&runtime)
}

fn engine(runtime: &Runtime, state: &tempfile::TempDir, reach: Reach) -> Result<Engine> {
    let settings = Settings { reach: ReachChoice::Only(reach), ..Settings::new(state.path()) };
    Ok(runtime.block_on(async { Engine::new(settings) })?)
}

fn kills(runtime: &Runtime) -> Result<()> {
    println!("tree: KILL of {MEMBERS} processes, until all are proven dead, {KILLS} times");
    for reach in [Reach::Cgroup, Reach::Scan, Reach::Group] {
        let state = tempfile::tempdir()?;
        let engine = engine(runtime, &state, reach)?;
        let (mut times, mut left) = (Vec::new(), Vec::new());
        for _ in 0..KILLS {
            let (time, survivors) = runtime.block_on(kill(&engine))?;
            times.push(time);
            left.push(survivors);
        }
        let times = Samples::new(times);
        let milliseconds = |share| times.quantile(share).as_secs_f64() * 1e3;
        let (median, worst) = (milliseconds(0.5), milliseconds(1.0));
        let reach = format!("{reach:?}");
        println!("  {reach:6} {median:.0} ms, at worst {worst:.0}; left {left:?}");
    }
    Ok(())
}

async fn kill(engine: &Engine) -> Result<(Duration, usize)> {
    let launch = Launch { stop: StopPolicy::KILL, ..Launch::shell(TREE) };
    let process = engine.start(launch).await?.process;
    while process.survivors().await.iter().filter(|one| one.name == "sleep").count() < MEMBERS {}
    let begun = Instant::now();
    let proof = process.stop(Verb::Stop).await;
    let time = begun.elapsed();
    for pid in proof.left.iter().filter_map(|pid| Pid::from_raw(*pid)) {
        kill_process(pid, Signal::KILL)?; // the pid is not reused: it still sleeps
    }
    process.ended().await;
    while !process.survivors().await.is_empty() {}
    Ok((time, proof.left.len()))
}

fn starts(runtime: &Runtime) -> Result<()> {
    let state = tempfile::tempdir()?;
    let (with, without) =
        (engine(runtime, &state, Reach::Cgroup)?, engine(runtime, &state, Reach::Scan)?);
    let [without, with] =
        in_turn(WARM_UP, STARTS, || Ok([start(runtime, &without)?, start(runtime, &with)?]))?;
    println!("tree: start + wait of /bin/true, in turn");
    println!("  without a leaf  {without}");
    println!("  with a leaf     {with}");
    println!("  ratio           {:.3}", with.ratio_to(&without));
    Ok(())
}

fn start(runtime: &Runtime, engine: &Engine) -> Result<Duration> {
    runtime.block_on(start_and_wait(engine, Launch::argv(["/bin/true"])))
}

fn closes(runtime: &Runtime) -> Result<()> {
    println!("tree: close of an engine with {ENDED} ended processes, stopping survivors");
    for reach in [Reach::Cgroup, Reach::Scan] {
        let state = tempfile::tempdir()?;
        let engine = engine(runtime, &state, reach)?;
        for _ in 0..ENDED {
            start(runtime, &engine)?;
        }
        let begun = Instant::now();
        runtime.block_on(engine.close(Survivors::Stop));
        let reach = format!("{reach:?}");
        println!("  {reach:6} {:.1} ms", begun.elapsed().as_secs_f64() * 1e3);
    }
    Ok(())
}
