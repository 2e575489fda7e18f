//! The time, as keeper and worker both have it.

use std::time::{Duration, SystemTime};

use rustix::time::{ClockId, clock_gettime};

/// Of the monotonic clock, which all processes share.
pub(crate) fn now() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}

pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// In nanoseconds: since 1970, and of the monotonic clock.
pub(crate) fn both() -> [u64; 2] {
    let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    [wall, now()].map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}
