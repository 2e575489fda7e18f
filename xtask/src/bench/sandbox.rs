//! What a sandbox policy adds to a start, by each way to enforce it, in turn with none.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Result;
use lastbyte_engine::{
    Enforcement, EnforcementChoice, Engine, Launch, Network, Sandbox, Settings, Workspace,
};
use tokio::runtime::Runtime;

use super::samples::Samples;

const ROUNDS: usize = 800;
const WARM_UP: usize = 50;

/// One thing to start, again and again.
struct Entry {
    name: String,
    engine: Engine,
    launch: Launch,
    times: Vec<Duration>,
}

pub(super) fn run() -> Result<()> {
    let runtime = Runtime::new()?;
    // Not in /tmp, which is part of a workspace.
    let state = tempfile::tempdir_in("/var/tmp")?;
    let cwd = state.path().join("work");
    std::fs::create_dir(&cwd)?;
    let mut entries = entries(&runtime, &state, &cwd)?;
    for round in 0..WARM_UP + ROUNDS {
        // Whoever comes next pays for what the one before has left to clean up.
        let count = entries.len();
        for entry in (0..count).map(|turn| (turn * 3 + round) % count) {
            let entry = &mut entries[entry];
            let time = runtime.block_on(start(&entry.engine, entry.launch.clone()))?;
            if round >= WARM_UP {
                entry.times.push(time);
            }
        }
    }
    report(entries);
    Ok(())
}

fn entries(
    runtime: &Runtime,
    state: &tempfile::TempDir,
    cwd: &std::path::Path,
) -> Result<Vec<Entry>> {
    let engine = |name: &str, enforcement| {
        let enforcement = EnforcementChoice::Only(enforcement);
        let settings = Settings { enforcement, ..Settings::new(state.path().join(name)) };
        runtime.block_on(async { Engine::new(settings) })
    };
    let launch =
        |sandbox| Launch { sandbox, cwd: Some(PathBuf::from(cwd)), ..Launch::argv(["/bin/true"]) };
    let entry = |name: String, engine: &Engine, sandbox| Entry {
        name,
        engine: engine.clone(),
        launch: launch(sandbox),
        times: Vec::new(),
    };
    let free = engine("free", Enforcement::Landlock)?;
    let mut entries = vec![entry("none".to_owned(), &free, Sandbox::FullAccess)];
    for enforcement in Enforcement::ALL {
        let name = format!("{enforcement:?}");
        let engine = engine(&name, enforcement)?;
        let read_only = Sandbox::ReadOnly { network: Network::Off };
        let workspace = Sandbox::WorkspaceWrite(Workspace::default());
        entries.push(entry(format!("{name}, read-only"), &engine, read_only));
        entries.push(entry(format!("{name}, workspace-write"), &engine, workspace));
    }
    Ok(entries)
}

fn report(entries: Vec<Entry>) {
    println!("sandbox: start + wait of /bin/true, in turn");
    let mut floor = None;
    for entry in entries {
        let times = Samples::new(entry.times);
        let median = times.median().as_secs_f64() * 1e6;
        let more = median - *floor.get_or_insert(median);
        println!("  {:28} {times}, {more:+.0} µs", entry.name);
    }
    println!("  (aims: at most +450 µs, by Landlock at most +200 µs)");
}

async fn start(engine: &Engine, launch: Launch) -> Result<Duration> {
    let begun = Instant::now();
    let started = engine.start(launch).await?;
    started.process.ended().await;
    Ok(begun.elapsed())
}
