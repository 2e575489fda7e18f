//! 1 GiB of output: through pump and log, and through a bare splice loop into a file.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use lastbyte_engine::{Engine, Launch, Settings};
use lastbyte_output::log::Quota;

use super::samples::Samples;

const BYTES: u64 = 1 << 30;
const ROUNDS: usize = 7;

pub(super) fn run() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let runtime = tokio::runtime::Runtime::new()?;
    let engine = runtime.block_on(async { Engine::new(Settings::new(folder.path())) })?;
    let (mut engine_times, mut quota_times, mut floor_times) = (vec![], vec![], vec![]);
    for _ in 0..ROUNDS {
        floor_times.push(bare(folder.path())?);
        let unbounded = Quota::new(u64::MAX / 4)?;
        engine_times.push(runtime.block_on(through_engine(&engine, unbounded))?);
        quota_times.push(runtime.block_on(through_engine(&engine, Quota::DEFAULT))?);
    }
    let floor = Samples::new(floor_times);
    println!(
        "copy: 1 GiB from a child that writes 64 KiB at a time, in turn with a bare splice loop"
    );
    println!("  floor           {}", rate(&floor));
    for (name, times) in [("engine", engine_times), ("engine, 64 MiB", quota_times)] {
        let times = Samples::new(times);
        println!(
            "  {name:15} {}, {:.2} of the floor's rate",
            rate(&times),
            1.0 / times.ratio_to(&floor)
        );
    }
    println!("  (aim: at least 0.95)");
    Ok(())
}

fn rate(times: &Samples) -> String {
    format!("{:.2} GB/s", BYTES as f64 / times.median().as_secs_f64() / 1e9)
}

const WRITER: [&str; 5] = ["dd", "if=/dev/zero", "bs=64k", "count=16384", "status=none"];

async fn through_engine(engine: &Engine, quota: Quota) -> Result<Duration> {
    let begun = Instant::now();
    let started = engine.start(Launch { quota, ..Launch::argv(WRITER) }).await?;
    let ending = started.process.ended().await;
    let time = begun.elapsed();
    ensure!(ending.final_len == BYTES, "{} bytes instead of {BYTES}", ending.final_len);
    engine.forget(started.process.id())?;
    Ok(time)
}

fn bare(folder: &Path) -> Result<Duration> {
    let path = folder.join("bare");
    let file = File::create(&path)?;
    let begun = Instant::now();
    let mut command = Command::new(WRITER[0]);
    let mut child =
        command.args(&WRITER[1..]).stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let pipe = child.stdout.take().expect("it was asked for");
    rustix::pipe::fcntl_setpipe_size(&pipe, 1 << 20)?;
    let mut offset = 0;
    while splice(pipe.as_fd(), file.as_fd(), &mut offset)? > 0 {}
    child.wait()?;
    let time = begun.elapsed();
    ensure!(offset == BYTES, "{offset} bytes instead of {BYTES}");
    std::fs::remove_file(path)?;
    Ok(time)
}

fn splice(
    pipe: std::os::fd::BorrowedFd<'_>,
    file: std::os::fd::BorrowedFd<'_>,
    offset: &mut u64,
) -> Result<usize> {
    let flags = rustix::pipe::SpliceFlags::MOVE;
    Ok(rustix::pipe::splice(pipe, None, file, Some(offset), 1 << 20, flags)?)
}
