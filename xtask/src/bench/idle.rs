//! What a silent running process costs: memory, threads, descriptors.

use anyhow::Result;
use lastbyte_engine::{Engine, Launch, Settings, StopPolicy, Survivors};

use super::usage::ProcessUsage;

const SLEEPERS: usize = 2000;

pub(super) fn run() -> Result<()> {
    let state = tempfile::tempdir()?;
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let engine = Engine::new(Settings::new(state.path()))?;
        // One-time allocations happen before the count.
        start(&engine, 50).await?;
        let before = ProcessUsage::read(std::process::id())?;
        start(&engine, SLEEPERS).await?;
        let after = ProcessUsage::read(std::process::id())?;
        println!("idle: {SLEEPERS} silent `sleep`, merged output, closed stdin");
        let each = |now: u64, then: u64| now.saturating_sub(then) as f64 / SLEEPERS as f64;
        println!(
            "  memory       {:.1} KB each (aim: at most 8)",
            each(after.memory, before.memory) / 1e3
        );
        println!("  threads      {:.3} each (aim: 0)", each(after.threads, before.threads));
        println!(
            "  descriptors  {:.2} each (aim: at most 4)",
            each(after.descriptors, before.descriptors)
        );
        engine.close(Survivors::Stop).await;
        Ok(())
    })
}

async fn start(engine: &Engine, count: usize) -> Result<()> {
    for _ in 0..count {
        let launch = Launch { stop: StopPolicy::KILL, ..Launch::argv(["sleep", "600"]) };
        engine.start(launch).await?;
    }
    Ok(())
}
