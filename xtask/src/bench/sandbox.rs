//! The time that a sandbox policy adds to a start, with each enforcement, in turn with no sandbox.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use lastbyte_engine::{
    Enforcement, EnforcementChoice, Engine, Launch, Network, Sandbox, Settings, Workspace,
};
use tokio::runtime::Runtime;

use super::samples::{Samples, WARM_UP};
use super::spawn::start_and_wait;

const ROUNDS: usize = 800;

/// A launch to measure.
struct Case {
    name: String,
    engine: Engine,
    launch: Launch,
    times: Vec<Duration>,
}

pub(super) fn run() -> Result<()> {
    let runtime = Runtime::new()?;
    // Not in /tmp, which a workspace policy includes.
    let state = tempfile::tempdir_in("/var/tmp")?;
    let cwd = state.path().join("work");
    std::fs::create_dir(&cwd)?;
    let mut cases = cases(&runtime, &state, &cwd)?;
    for round in 0..WARM_UP + ROUNDS {
        // The order changes, because a start also pays for the cleanup of the previous one.
        let count = cases.len();
        for case in (0..count).map(|turn| (turn * 3 + round) % count) {
            let case = &mut cases[case];
            let time = runtime.block_on(start_and_wait(&case.engine, case.launch.clone()))?;
            if round >= WARM_UP {
                case.times.push(time);
            }
        }
    }
    report(cases);
    Ok(())
}

fn cases(runtime: &Runtime, state: &tempfile::TempDir, cwd: &std::path::Path) -> Result<Vec<Case>> {
    let engine = |name: &str, enforcement| {
        let enforcement = EnforcementChoice::Only(enforcement);
        let settings = Settings { enforcement, ..Settings::new(state.path().join(name)) };
        runtime.block_on(async { Engine::new(settings) })
    };
    let launch =
        |sandbox| Launch { sandbox, cwd: Some(PathBuf::from(cwd)), ..Launch::argv(["/bin/true"]) };
    let case = |name: String, engine: &Engine, sandbox| Case {
        name,
        engine: engine.clone(),
        launch: launch(sandbox),
        times: Vec::new(),
    };
    let free = engine("free", Enforcement::Landlock)?;
    let mut cases = vec![case("none".to_owned(), &free, Sandbox::FullAccess)];
    for enforcement in Enforcement::ALL {
        let name = format!("{enforcement:?}");
        let engine = engine(&name, enforcement)?;
        let read_only = Sandbox::ReadOnly { network: Network::Off };
        let workspace = Sandbox::WorkspaceWrite(Workspace::default());
        cases.push(case(format!("{name}, read-only"), &engine, read_only));
        cases.push(case(format!("{name}, workspace-write"), &engine, workspace));
    }
    Ok(cases)
}

fn report(cases: Vec<Case>) {
    println!("sandbox: start + wait of /bin/true, in turn");
    let mut floor = None;
    for case in cases {
        let times = Samples::new(case.times);
        let median = times.median().as_secs_f64() * 1e6;
        let more = median - *floor.get_or_insert(median);
        println!("  {:28} {times}, {more:+.0} µs", case.name);
    }
    println!("  (aims: at most +450 µs, by Landlock at most +200 µs)");
}
