//! Waiting for a condition by polling.

use std::time::{Duration, Instant};

/// How long a fixture waits before it fails. It is long because a passing test never reaches it,
/// even on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

const INTERVAL: Duration = Duration::from_millis(2);

/// Returns when `condition` holds; panics with `what` if it does not within [`PATIENCE`].
#[track_caller]
#[expect(clippy::disallowed_methods, reason = "the one place that polls")]
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "timed out after {PATIENCE:?}: {what}");
        std::thread::sleep(INTERVAL);
    }
}
