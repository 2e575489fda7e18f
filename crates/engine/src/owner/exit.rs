//! Notifies when the leader may have exited.

use std::time::Duration;

use lastbyte_sys::readiness::{self, Interest};
use lastbyte_sys::{Child, ExitWatch};
use tokio::io::unix::AsyncFd;
use tokio::time::{Instant, sleep_until};

/// The leader's pidfd, registered with the runtime. If the kernel refuses to watch it (no memory,
/// too many watches for this user), the running command is not given up: its exit is polled
/// instead.
#[derive(Debug)]
pub(crate) enum Exit {
    Watched(AsyncFd<ExitWatch>),
    Polled,
    /// Of a child of the keeper, which tells of the exit a moment after the pidfd has.
    Told(AsyncFd<ExitWatch>),
}

const POLL: Duration = Duration::from_millis(10);
const SOON: Duration = Duration::from_millis(1);

impl Exit {
    pub(crate) fn new(child: &Child) -> Self {
        match readiness::watch(child.exit_watch(), Interest::READABLE) {
            Ok(watch) if child.is_taken_over() => Self::Told(watch),
            Ok(watch) => Self::Watched(watch),
            Err(_) => Self::Polled,
        }
    }

    /// Returns when it is time to check. Cancel-safe.
    pub(super) async fn changed(&self) {
        match self {
            Self::Watched(watch) => {
                // Clear first, then check: a pidfd stays ready once it is.
                if let Ok(mut ready) = watch.readable().await {
                    ready.clear_ready();
                }
            }
            Self::Told(watch) => {
                // Not cleared: from then on this is called again and again until the keeper has told.
                _ = watch.readable().await;
                sleep_until(Instant::now() + SOON).await;
            }
            Self::Polled => sleep_until(Instant::now() + POLL).await,
        }
    }
}
