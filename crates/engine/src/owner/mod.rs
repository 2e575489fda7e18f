//! The owner of a process: one task, one short loop per phase, each phase a type that the next
//! one consumes.
//!
//! ```text
//!  Running ──leader exits──▶ Draining ──EOF, quiet, or limit──▶ Ended ──EOF──▶ (done)
//! ```
//!
//! `running`, `draining` and `ended` are the phases, `core` what all have; `exit` watches the
//! leader. `ends` are our ends of its pipes; `owner_end` is the mailbox and the publisher, `pump` moves output into the log, `holds`
//! are readers that hold output back, `stdin` is the queue of input. `sampler` watches limits that the
//! kernel does not enforce, `limit_hit` tells whether one that it does was hit.

mod core;
mod draining;
mod ended;
pub(crate) mod ends;
mod exit;
pub(crate) mod holds;
mod limit_hit;
pub(crate) mod owner_end;
pub(crate) mod pump;
mod running;
mod sampler;
pub(crate) mod stdin;

use lastbyte_output::log::Writer;
use tokio::task::yield_now;

use crate::owner::owner_end::OwnerEnd;

use ended::Ended;

pub(crate) use core::Core;
pub(crate) use exit::Exit;
pub(crate) use limit_hit::KernelLimits;
pub(crate) use running::{Reason, Running, Timers};
pub(crate) use sampler::Sampler;

/// Takes a process from its start to its last late byte, and returns its log.
///
/// What the owner has is boxed: a future reserves space for its arguments twice, before and after it
/// begins.
pub(crate) fn own(running: Running, owner_end: OwnerEnd) -> impl Future<Output = Writer> {
    let (running, mut owner_end) = (Box::new(running), Box::new(owner_end));
    async move {
        let draining = running.until_exited(&mut owner_end).await;
        let ended = draining.until_ended(&mut owner_end).await;
        // Let waiters run before files are closed.
        yield_now().await;
        ended.until_closed(&mut owner_end).await
    }
}

/// Goes on with late output after a take-over.
pub(crate) async fn hold_open(core: Box<Core>, mut owner_end: OwnerEnd) -> Writer {
    Ended { core, exit: None }.until_closed(&mut owner_end).await
}
