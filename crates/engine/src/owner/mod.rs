//! The owner of a process: one task, one short loop per phase, each phase a type that the next
//! one consumes.
//!
//! ```text
//!  Running ──leader exits──▶ Draining ──EOF, quiet, or limit──▶ Ended ──EOF──▶ (done)
//! ```

mod core;
mod draining;
mod ended;
mod running;

use tokio::task::yield_now;

use crate::desk::Desk;

pub(crate) use core::Core;
pub(crate) use running::{Running, Timers};

/// Takes a process from its start to its last late byte.
pub(crate) async fn own(running: Running, mut desk: Desk) {
    let draining = running.until_exited(&mut desk).await;
    let drained = draining.until_drained(&mut desk).await;
    let ended = drained.end(&mut desk).await;
    // Those who waited for it come before files are closed.
    yield_now().await;
    ended.until_closed(&mut desk).await;
}
