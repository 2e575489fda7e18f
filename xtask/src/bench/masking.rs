//! 1 GiB of output with 20 secrets to mask, in turn with the same output without secrets.

use std::iter;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use lastbyte_engine::{Engine, FromKeeper, Launch, Settings};
use lastbyte_output::log::Quota;
use lastbyte_output::mask::Secret;
use lastbyte_sys::registry::Registry;

use super::samples::{Samples, in_turn};

const FILE: usize = 16 << 20;
const FILES: usize = 64;
const BYTES: u64 = (FILE * FILES) as u64;
const ROUNDS: usize = 5;

pub(super) fn run() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let text = folder.path().join("text");
    let line = |number| format!("{number:8} compiled src/main.rs in 12 ms, without a warning\n");
    let lines: Vec<u8> =
        (0..).flat_map(|number: u32| line(number).into_bytes()).take(FILE).collect();
    std::fs::write(&text, lines)?;
    let runtime = tokio::runtime::Runtime::new()?;
    let alone = runtime.block_on(async { Engine::new(Settings::new(folder.path().join("a"))) })?;
    let kept = runtime.block_on(kept_engine(&folder.path().join("b")))?;
    let secrets = secrets()?;
    let copy = |engine, secrets: &[Secret]| runtime.block_on(copy(engine, &text, secrets));
    let [plain, masked, kept] = in_turn(1, ROUNDS, || {
        Ok([copy(&alone, &[])?, copy(&alone, &secrets)?, copy(&kept, &secrets)?])
    })?;
    println!("masking: 1 GiB of lines, in turn without secrets");
    println!("  no secrets               {}", rate(&plain));
    for (name, times) in [("20 secrets", masked), ("20 secrets, with a keeper", kept)] {
        let ratio = 1.0 / times.ratio_to(&plain);
        println!("  {name:25} {}, {ratio:.2} of that rate", rate(&times));
    }
    println!("  (aim: at least 0.5)");
    Ok(())
}

fn rate(times: &Samples) -> String {
    format!("{:.2} GB/s", BYTES as f64 / times.median().as_secs_f64() / 1e9)
}

fn secrets() -> Result<Vec<Secret>> {
    let value = |number: u64| format!("{:x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15)).repeat(2);
    let secret = |number| Secret::new(format!("SECRET_{number}"), value(number));
    Ok((1..=20).map(secret).collect::<Result<_, _>>()?)
}

/// Its output goes through memory that would outlive it.
async fn kept_engine(folder: &Path) -> Result<Engine> {
    let (registry, _file) = Registry::create()?;
    let keeper = FromKeeper {
        registry,
        keeper: std::os::unix::process::parent_id().cast_signed(),
        inherited: Vec::new(),
    };
    Ok(Engine::kept(Settings::new(folder), keeper)?)
}

async fn copy(engine: &Engine, text: &Path, secrets: &[Secret]) -> Result<Duration> {
    let (quota, secrets) = (Quota::new(u64::MAX / 4)?, secrets.to_vec());
    let argv = iter::once(Path::new("cat")).chain(iter::repeat_n(text, FILES));
    let launch = Launch { quota, secrets, ..Launch::argv(argv) };
    let begun = Instant::now();
    let started = engine.start(launch).await?;
    let ending = started.process.ended().await;
    let time = begun.elapsed();
    ensure!(ending.final_len == BYTES, "{} bytes instead of {BYTES}", ending.final_len);
    engine.forget(started.process.id())?;
    Ok(time)
}
