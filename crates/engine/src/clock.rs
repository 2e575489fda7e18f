//! Optional deadlines, a pause that lets waiters go first, ages, and unix times in milliseconds.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::{Instant, sleep_until};

/// A longer time means for ever: thirty years fit into every clock.
const FOR_EVER: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// The deadline this long from now.
pub(crate) fn deadline_after(time: Duration) -> Instant {
    Instant::now() + time.min(FOR_EVER)
}

/// Waits until the deadline; for ever if there is none. Cancel-safe.
pub(crate) async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// How long work waits that nothing waits for. Tasks woken by the ending run first, and so do the
/// clients they answer, which may need this very CPU.
pub(crate) const AFTER_WAITERS: Duration = Duration::from_millis(1);

pub(crate) async fn after_waiters() {
    sleep_until(Instant::now() + AFTER_WAITERS).await;
}

/// Whole milliseconds since 1970.
pub(crate) fn unix_ms(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Where the age of an ended process is counted from, by a monotonic clock.
///
/// `CLOCK_MONOTONIC` stops while the machine is suspended. That is right here: the clients that
/// would ask for a result are suspended as well.
#[derive(Debug, Clone, Copy)]
pub(crate) enum AgeFrom {
    /// This program started it at this time.
    Start(Instant),
    /// It was this old when this program found it.
    Restart { found: Instant, age: Duration },
}

impl AgeFrom {
    /// How long ago a process ended, this long after its start.
    pub(crate) fn age(self, after: Duration, now: Instant) -> Duration {
        match self {
            Self::Start(start) => now.saturating_duration_since(start).saturating_sub(after),
            Self::Restart { found, age } => age + now.saturating_duration_since(found),
        }
    }
}

/// An age by the wall clock, which may have been set meanwhile: never negative, and at most `most`.
pub(crate) fn wall_clock_age(since: SystemTime, now: SystemTime, most: Duration) -> Duration {
    now.duration_since(since).unwrap_or_default().min(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn an_age_counts_from_the_ending_or_goes_on_from_what_it_was() {
        let start = Instant::now();
        assert_eq!(AgeFrom::Start(start).age(HOUR, start + 3 * HOUR), 2 * HOUR);
        assert_eq!(AgeFrom::Start(start).age(HOUR, start), Duration::ZERO);
        let found = AgeFrom::Restart { found: start, age: HOUR };
        assert_eq!(found.age(7 * HOUR, start + 2 * HOUR), 3 * HOUR);
    }

    #[test]
    fn a_clock_that_was_wrong_makes_nothing_older_than_half_a_day() {
        let (ended, most) = (UNIX_EPOCH + 490_000 * HOUR, 12 * HOUR);
        for (now, want) in [
            (ended + 2 * HOUR, 2 * HOUR),
            // The clock was set back, or it was ahead at the ending.
            (ended - 2 * HOUR, Duration::ZERO),
            (UNIX_EPOCH, Duration::ZERO),
            (ended + 400 * 24 * HOUR, most),
        ] {
            assert_eq!(wall_clock_age(ended, now, most), want);
        }
        // The ending was before the clock was first set after boot.
        assert_eq!(wall_clock_age(UNIX_EPOCH + HOUR, ended, most), most);
    }
}
