//! Times of the same thing done many times.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::Result;

/// Samples in order of size.
pub(super) struct Samples(Vec<Duration>);

impl Samples {
    pub(super) fn new(mut samples: Vec<Duration>) -> Self {
        samples.sort_unstable();
        Self(samples)
    }

    /// The sample below which this share of all lie.
    pub(super) fn quantile(&self, share: f64) -> Duration {
        let last = self.0.len().saturating_sub(1);
        self.0[((last as f64) * share).round() as usize]
    }

    pub(super) fn median(&self) -> Duration {
        self.quantile(0.5)
    }

    /// How many times as long as the other, by the medians.
    pub(super) fn ratio_to(&self, floor: &Self) -> f64 {
        self.median().as_secs_f64() / floor.median().as_secs_f64()
    }
}

impl fmt::Display for Samples {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = |share| self.quantile(share).as_secs_f64() * 1e6;
        let (p50, p90, p99) = (micros(0.5), micros(0.9), micros(0.99));
        write!(out, "p50 {p50:.0} µs, p90 {p90:.0}, p99 {p99:.0} (n = {})", self.0.len())
    }
}

/// How long it took.
pub(super) fn timed<T>(work: impl FnOnce() -> Result<T>) -> Result<Duration> {
    let begun = Instant::now();
    work()?;
    Ok(begun.elapsed())
}
