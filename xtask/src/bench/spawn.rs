//! Start and wait of `/bin/true`: through the engine with and without a journal, and with std.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Result;
use lastbyte_engine::{Engine, History, Launch, Settings};

use super::samples::{WARM_UP, in_turn, timed};

const ROUNDS: usize = 1500;

pub(super) fn run() -> Result<()> {
    let state = tempfile::tempdir()?;
    let runtime = tokio::runtime::Runtime::new()?;
    let engine = |folder: &str, history| {
        let settings = Settings { history, ..Settings::new(state.path().join(folder)) };
        runtime.block_on(async { Engine::new(settings) })
    };
    let without = engine("plain", History::None)?;
    let with = engine("journalled", History::Journal)?;
    let start = |engine| runtime.block_on(start_and_wait(engine, Launch::argv(["/bin/true"])));
    let [engine, journal, floor] =
        in_turn(WARM_UP, ROUNDS, || Ok([start(&without)?, start(&with)?, plain()?]))?;
    println!("spawn: start + wait of /bin/true, in turn with posix_spawn of std");
    println!("  floor   {floor}");
    println!("  engine  {engine}");
    println!("  journal {journal}");
    println!("  ratio   {:.2} (aim: at most 1.15)", engine.ratio_to(&floor));
    println!("  with a journal to without {:.2} (aim: at most 1.05)", journal.ratio_to(&engine));
    Ok(())
}

pub(super) async fn start_and_wait(engine: &Engine, launch: Launch) -> Result<Duration> {
    let begun = Instant::now();
    engine.start(launch).await?.process.ended().await;
    Ok(begun.elapsed())
}

/// posix_spawn, which glibc does with CLONE_VM and CLONE_VFORK, and one pipe read to its end.
pub(super) fn plain() -> Result<Duration> {
    timed(|| {
        let mut command = Command::new("/bin/true");
        Ok(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).output()?)
    })
}
