//! Start and wait of `/bin/true`: through the engine, and as plainly as std can.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Result;
use lastbyte_engine::{Engine, Launch, Settings};

use super::samples::Samples;

const ROUNDS: usize = 1500;

pub(super) fn run() -> Result<()> {
    let state = tempfile::tempdir()?;
    let runtime = tokio::runtime::Runtime::new()?;
    let (mut engine_times, mut floor_times) = (Vec::new(), Vec::new());
    let engine = runtime.block_on(async { Engine::new(Settings::new(state.path())) })?;
    for round in 0..ROUNDS + 50 {
        let through_engine = runtime.block_on(through_engine(&engine))?;
        let plain = plain()?;
        if round >= 50 {
            engine_times.push(through_engine);
            floor_times.push(plain);
        }
    }
    let (engine_times, floor) = (Samples::new(engine_times), Samples::new(floor_times));
    println!("spawn: start + wait of /bin/true, in turn with std's posix_spawn");
    println!("  floor   {floor}");
    println!("  engine  {engine_times}");
    println!("  ratio   {:.2} (aim: at most 1.15)", engine_times.ratio_to(&floor));
    Ok(())
}

async fn through_engine(engine: &Engine) -> Result<Duration> {
    let begun = Instant::now();
    let started = engine.start(Launch::argv(["/bin/true"])).await?;
    started.process.ended().await;
    Ok(begun.elapsed())
}

/// posix_spawn, which glibc does with CLONE_VM and CLONE_VFORK, and one pipe read to its end.
pub(super) fn plain() -> Result<Duration> {
    let begun = Instant::now();
    let mut command = Command::new("/bin/true");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).output()?;
    Ok(begun.elapsed())
}
