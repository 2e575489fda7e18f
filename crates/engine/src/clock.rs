//! Deadlines that may be never.

use tokio::time::{Instant, sleep_until};

/// Waits until the deadline; for ever when there is none. Cancel-safe.
pub(crate) async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
