//! The monotonic clock as a number, which means the same in all processes of this boot.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The time since an instant that no process of this boot sees otherwise.
pub fn monotonic() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    let (seconds, nanos) = (u64::try_from(now.tv_sec), u32::try_from(now.tv_nsec));
    Duration::new(seconds.unwrap_or(0), nanos.unwrap_or(0))
}
