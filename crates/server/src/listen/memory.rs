//! Gives memory back to the machine when connections have gone.
//!
//! The allocator keeps what was freed between blocks that are in use: after thousands of connections
//! that is most of what they took.

use std::sync::Arc;
use std::time::Duration;

use lastbyte_sys::{OwnProgram, memory};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep_until};

use super::stage::{Stage, Stages, until};
use super::traffic::Traffic;

/// How long connections may come and go before memory is given back.
const REST: Duration = Duration::from_secs(5);
/// A server that has less keeps it: what is given back has to be asked for again.
const SMALL: u64 = 16 << 20;

/// Runs until the server shuts down, and does nothing while no connection ends.
pub(super) async fn give_back_after_connections(traffic: Arc<Traffic>, mut stages: Stages) {
    loop {
        let rest = async {
            traffic.until_one_closed().await;
            sleep_until(Instant::now() + REST).await;
        };
        tokio::select! {
            () = rest => {}
            () = until(&mut stages, Stage::Draining) => return,
        }
        // A failure is a panic of the allocator's, and has been told.
        _ = spawn_blocking(give_back).await;
    }
}

fn give_back() {
    if OwnProgram::resident_bytes().is_none_or(|bytes| bytes > SMALL) {
        memory::trim();
    }
}
