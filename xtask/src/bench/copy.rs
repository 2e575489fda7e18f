//! 1 GiB of output: through pump and log, compared with a bare splice loop into a file.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use lastbyte_engine::{Engine, Launch, Settings};
use lastbyte_output::log::Quota;
use rustix::pipe::{SpliceFlags, fcntl_setpipe_size, splice};

use super::samples::{Samples, in_turn};

const BYTES: u64 = 1 << 30;
const ROUNDS: usize = 7;

pub(super) fn run() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let runtime = tokio::runtime::Runtime::new()?;
    let engine = runtime.block_on(async { Engine::new(Settings::new(folder.path())) })?;
    let unbounded = Quota::new(u64::MAX / 4)?;
    let copy = |quota| runtime.block_on(through_engine(&engine, quota));
    let [floor, engine_times, quota_times] = in_turn(0, ROUNDS, || {
        Ok([bare(folder.path(), BYTES)?, copy(unbounded)?, copy(Quota::DEFAULT)?])
    })?;
    println!(
        "copy: 1 GiB from a child that writes 64 KiB at a time, in turn with a bare splice loop"
    );
    println!("  floor           {}", rate(&floor));
    for (name, times) in [("engine", engine_times), ("engine, 64 MiB", quota_times)] {
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

/// A command that prints `bytes` bytes, 64 KiB at a time.
pub(super) fn writer(bytes: u64) -> [String; 5] {
    let count = format!("count={}", bytes >> 16);
    ["dd", "if=/dev/zero", "bs=64k", &count, "status=none"].map(str::to_owned)
}

async fn through_engine(engine: &Engine, quota: Quota) -> Result<Duration> {
    let begun = Instant::now();
    let started = engine.start(Launch { quota, ..Launch::argv(writer(BYTES)) }).await?;
    let ending = started.process.ended().await;
    let time = begun.elapsed();
    ensure!(ending.final_len == BYTES, "{} bytes instead of {BYTES}", ending.final_len);
    engine.forget(started.process.id())?;
    Ok(time)
}

/// A bare splice loop of `bytes` bytes into a file.
pub(super) fn bare(folder: &Path, bytes: u64) -> Result<Duration> {
    let path = folder.join("bare");
    let file = File::create(&path)?;
    let begun = Instant::now();
    let [program, arguments @ ..] = writer(bytes);
    let mut command = Command::new(program);
    let mut child = command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let pipe = child.stdout.take().expect("stdout is piped");
    fcntl_setpipe_size(&pipe, 1 << 20)?;
    let mut offset = 0;
    while splice(&pipe, None, &file, Some(&mut offset), 1 << 20, SpliceFlags::MOVE)? > 0 {}
    child.wait()?;
    let time = begun.elapsed();
    ensure!(offset == bytes, "{offset} bytes instead of {bytes}");
    std::fs::remove_file(path)?;
    Ok(time)
}
