//! Waiting for something that nobody announces.

use std::time::{Duration, Instant};

/// How long a fixture waits before it calls a condition hopeless. Long, because it exists only
/// to fail: a test that passes never waits it out, on however busy a machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

const BETWEEN_LOOKS: Duration = Duration::from_millis(2);

/// Returns when `condition` holds; panics, naming `what`, when it has not come true in
/// [`PATIENCE`].
#[track_caller]
#[expect(clippy::disallowed_methods, reason = "the one place that looks, rests and looks again")]
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "waited {PATIENCE:?} in vain: {what}");
        std::thread::sleep(BETWEEN_LOOKS);
    }
}
