//! Deadlines that may be never, a breather, and times of the day as the log counts them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

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

/// A millisecond, before something is done that nobody waits for: those who waited for the ending
/// come first, and whoever is answered by them, who may be waiting for this very processor.
pub(crate) async fn breather() {
    sleep_until(Instant::now() + Duration::from_millis(1)).await;
}

/// In milliseconds since 1970, as far as they are over.
pub(crate) fn unix_ms(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
