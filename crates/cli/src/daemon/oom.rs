//! Lets the kernel kill commands before the server when memory runs out.
//!
//! To do this in the child, before its program, would cost each start 8 of about 48 µs. So it is done
//! once a second for those that are still running: what has used up the memory was mostly there for
//! longer.

use std::collections::HashSet;
use std::time::Duration;

use lastbyte_engine::{Engine, Id, Process};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{MissedTickBehavior, interval};

use super::closing::alive;

const EVERY: Duration = Duration::from_secs(1);

/// How much more readily than the server a command is killed: as if it used half of the memory more.
const MORE: i32 = 500;

/// Stops when the set is dropped. Must be called on a runtime.
pub(crate) fn begin(engine: Engine) -> JoinSet<()> {
    JoinSet::from_iter([prefer_commands(engine)])
}

async fn prefer_commands(engine: Engine) {
    let mut done: HashSet<Id> = HashSet::new();
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if engine.phases().running == 0 {
            done.clear();
            continue;
        }
        let running = alive(&engine);
        let fresh: Vec<i32> = running
            .iter()
            .filter(|process| !done.contains(&process.id()))
            .map(Process::pid)
            .collect();
        done = running.iter().map(Process::id).collect();
        // A scan of /proc, which waits for no disk but for the kernel's locks.
        _ = spawn_blocking(move || fresh.into_iter().for_each(prefer)).await;
    }
}

fn prefer(leader: i32) {
    // Without /proc the kernel goes by size alone.
    _ = lastbyte_sys::oom::prefer(leader, MORE);
}
