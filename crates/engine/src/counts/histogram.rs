//! A histogram of durations: counts per bucket and the sum.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Uses relaxed atomics: recording a duration takes no lock and does not allocate.
#[derive(Debug, Default)]
pub struct Histogram {
    counts: [AtomicU64; BUCKETS],
    /// In nanoseconds, enough for five hundred years.
    sum: AtomicU64,
}

/// The contents of a histogram at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Distribution {
    /// How many took at most each of [`Histogram::BOUNDS`] and longer than the one before. The last
    /// number counts those beyond all bounds.
    pub counts: [u64; BUCKETS],
    pub sum: Duration,
}

const BUCKETS: usize = Histogram::BOUNDS.len() + 1;

impl Histogram {
    /// From a fraction of a spawn to longer than anyone wants to wait.
    pub const BOUNDS: [Duration; 14] = [
        Duration::from_micros(100),
        Duration::from_micros(250),
        Duration::from_micros(500),
        Duration::from_millis(1),
        Duration::from_micros(2500),
        Duration::from_millis(5),
        Duration::from_millis(10),
        Duration::from_millis(25),
        Duration::from_millis(50),
        Duration::from_millis(100),
        Duration::from_millis(250),
        Duration::from_secs(1),
        Duration::from_millis(2500),
        Duration::from_secs(10),
    ];

    pub fn note(&self, took: Duration) {
        let bucket = Self::BOUNDS.partition_point(|bound| *bound < took);
        if let Some(count) = self.counts.get(bucket) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.sum.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// Reads counts and sum one after the other, so they may differ by one during a concurrent
    /// update.
    pub fn snapshot(&self) -> Distribution {
        Distribution {
            counts: std::array::from_fn(|bucket| self.counts[bucket].load(Ordering::Relaxed)),
            sum: Duration::from_nanos(self.sum.load(Ordering::Relaxed)),
        }
    }
}

impl Distribution {
    /// The number of recorded durations.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_counted_below_the_first_bound_that_it_does_not_pass() {
        let histogram = Histogram::default();
        let bounds = Histogram::BOUNDS;
        assert!(bounds.is_sorted_by(|one, next| one < next));
        histogram.note(Duration::ZERO);
        histogram.note(bounds[0]);
        histogram.note(bounds[0] + Duration::from_nanos(1));
        histogram.note(bounds[bounds.len() - 1]);
        histogram.note(Duration::from_secs(3600));
        let distribution = histogram.snapshot();
        let mut want = [0; BUCKETS];
        (want[0], want[1], want[BUCKETS - 2], want[BUCKETS - 1]) = (2, 1, 1, 1);
        assert_eq!(distribution.counts, want);
        assert_eq!(distribution.count(), 5);
        assert_eq!(distribution.sum, Duration::from_nanos(3_610_000_200_001));
    }

    #[test]
    fn nothing_is_missed_when_many_note_at_once() {
        let histogram = Histogram::default();
        std::thread::scope(|scope| {
            for ms in 1..=8 {
                let (histogram, took) = (&histogram, Duration::from_millis(ms));
                scope.spawn(move || (0..1000).for_each(|_| histogram.note(took)));
            }
        });
        let distribution = histogram.snapshot();
        assert_eq!((distribution.count(), distribution.sum), (8000, Duration::from_secs(36)));
    }
}
