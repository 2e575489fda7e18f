//! Start and wait of `/bin/true`: through the engine, with and without a journal, and as plainly as
//! std can.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Result;
use lastbyte_engine::{Engine, History, Launch, Settings};

use super::samples::Samples;

const ROUNDS: usize = 1500;

pub(super) fn run() -> Result<()> {
    let state = tempfile::tempdir()?;
    let runtime = tokio::runtime::Runtime::new()?;
    let (mut engine_times, mut journal_times, mut floor_times) = (vec![], vec![], vec![]);
    let engine = |folder: &str, history| {
        let settings = Settings { history, ..Settings::new(state.path().join(folder)) };
        runtime.block_on(async { Engine::new(settings) })
    };
    let (plain_engine, journalled) =
        (engine("plain", History::None)?, engine("journalled", History::Journal)?);
    for round in 0..ROUNDS + 50 {
        let without = runtime.block_on(through_engine(&plain_engine))?;
        let with = runtime.block_on(through_engine(&journalled))?;
        let plain = plain()?;
        if round >= 50 {
            engine_times.push(without);
            journal_times.push(with);
            floor_times.push(plain);
        }
    }
    let (engine_times, floor) = (Samples::new(engine_times), Samples::new(floor_times));
    let journal_times = Samples::new(journal_times);
    println!("spawn: start + wait of /bin/true, in turn with std's posix_spawn");
    println!("  floor   {floor}");
    println!("  engine  {engine_times}");
    println!("  journal {journal_times}");
    println!("  ratio   {:.2} (aim: at most 1.15)", engine_times.ratio_to(&floor));
    println!(
        "  with a journal to without {:.2} (aim: at most 1.05)",
        journal_times.ratio_to(&engine_times)
    );
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
