//! How long a snapshot and a signal take while four processes flood, compared with an idle engine
//! and with an idle engine on a machine that four other floods keep busy.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use lastbyte_engine::{Engine, Launch, Process, Settings, Signal, StopPolicy, Survivors};

use super::daemon::KilledOnDrop;
use super::samples::Samples;

const ROUNDS: usize = 2000;
const FLOODS: usize = 4;

pub(super) fn run() -> Result<()> {
    let state = tempfile::tempdir()?;
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let engine = Engine::new(Settings::new(state.path()))?;
        let quiet = start(&engine, &["sleep", "600"]).await?;
        let idle = measure(&quiet).await?;
        let others = (0..FLOODS).map(|_| other_flood()).collect::<Result<Vec<_>>>()?;
        let floor = measure(&quiet).await?;
        drop(others);
        let mut floods = Vec::new();
        for _ in 0..FLOODS {
            floods.push(start(&engine, &["cat", "/dev/zero"]).await?);
        }
        let before = total(&floods);
        let begun = Instant::now();
        let loaded = measure(&quiet).await?;
        let rate = (total(&floods) - before) as f64 / begun.elapsed().as_secs_f64() / 1e9;
        println!(
            "fairness: {FLOODS} floods ({rate:.2} GB/s in all) against idle, {ROUNDS} rounds each"
        );
        print("look", [&idle.0, &floor.0, &loaded.0]);
        print("signal", [&idle.1, &floor.1, &loaded.1]);
        engine.close(Survivors::Stop).await;
        Ok(())
    })
}

fn print(what: &str, [idle, floor, loaded]: [&Samples; 3]) {
    let p99 = |samples: &Samples| samples.quantile(0.99).as_secs_f64();
    println!("  {what:6} idle             {idle}");
    println!("  {what:6} others flood     {floor}");
    println!("  {what:6} ours flood       {loaded}");
    let (to_idle, to_floor) = (p99(loaded) / p99(idle), p99(loaded) / p99(floor));
    println!(
        "  {what:6} p99 {to_idle:.1} times idle's, {to_floor:.1} times that under others' floods"
    );
}

/// A flood outside the engine: a writer, and a reader that copies as the engine does.
fn other_flood() -> Result<[KilledOnDrop; 2]> {
    let writer = Command::new("cat").arg("/dev/zero").stdout(Stdio::piped()).spawn()?;
    let mut writer = KilledOnDrop(writer);
    let pipe = writer.0.stdout.take().expect("stdout is piped");
    let reader = Command::new("cat").stdin(pipe).stdout(Stdio::null()).spawn()?;
    Ok([writer, KilledOnDrop(reader)])
}

async fn start(engine: &Engine, argv: &[&str]) -> Result<Process> {
    let launch = Launch { stop: StopPolicy::KILL, ..Launch::argv(argv.iter().copied()) };
    Ok(engine.start(launch).await?.process)
}

fn total(processes: &[Process]) -> u64 {
    processes.iter().map(|process| process.snapshot().extent.len).sum()
}

/// Takes each snapshot in its own task, as a server does for a request.
async fn measure(process: &Process) -> Result<(Samples, Samples)> {
    let (mut looks, mut signals) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        looks.push(look(process.clone()).await?);
        let begun = Instant::now();
        process.signal(Signal::CONT).await?;
        signals.push(begun.elapsed());
    }
    Ok((Samples::new(looks), Samples::new(signals)))
}

async fn look(process: Process) -> Result<Duration> {
    let begun = Instant::now();
    let snapshot = tokio::spawn(async move { process.snapshot() }).await?;
    ensure!(snapshot.ending().is_none(), "the process has ended");
    Ok(begun.elapsed())
}
