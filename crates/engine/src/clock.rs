//! Deadlines that may be never.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// A time longer than this is for ever: thirty years fit into every clock.
const FOR_EVER: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// When a time that begins now is over.
pub(crate) fn deadline_after(time: Duration) -> Instant {
    Instant::now() + time.min(FOR_EVER)
}

/// Waits until the deadline; for ever when there is none. Cancel-safe.
pub(crate) async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
