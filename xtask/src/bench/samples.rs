//! Measured times.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::Result;

/// Rounds before the measured ones, for short measurements.
pub(super) const WARM_UP: usize = 50;

/// Sorted times of the same operation.
pub(crate) struct Samples(Vec<Duration>);

impl Samples {
    pub(crate) fn new(mut samples: Vec<Duration>) -> Self {
        samples.sort_unstable();
        Self(samples)
    }

    pub(crate) fn quantile(&self, share: f64) -> Duration {
        let last = self.0.len().saturating_sub(1);
        self.0[((last as f64) * share).round() as usize]
    }

    pub(crate) fn median(&self) -> Duration {
        self.quantile(0.5)
    }

    /// The ratio of the medians.
    pub(super) fn ratio_to(&self, floor: &Self) -> f64 {
        self.median().as_secs_f64() / floor.median().as_secs_f64()
    }

    /// The ratio of the medians, with the median of `empty` subtracted from this one.
    pub(super) fn net_ratio_to(&self, floor: &Self, empty: &Self) -> f64 {
        let net = self.median().saturating_sub(empty.median());
        net.as_secs_f64() / floor.median().as_secs_f64()
    }
}

impl fmt::Display for Samples {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = |share| self.quantile(share).as_secs_f64() * 1e6;
        let (p50, p90, p99) = (micros(0.5), micros(0.9), micros(0.99));
        write!(out, "p50 {p50:.0} µs, p90 {p90:.0}, p99 {p99:.0} (n = {})", self.0.len())
    }
}

/// Repeats a round of several measurements and returns the samples of each.
pub(super) fn in_turn<const N: usize>(
    warm_up: usize,
    rounds: usize,
    mut round: impl FnMut() -> Result<[Duration; N]>,
) -> Result<[Samples; N]> {
    let mut times = [const { Vec::new() }; N];
    for number in 0..warm_up + rounds {
        let measured = round()?;
        if number >= warm_up {
            times.iter_mut().zip(measured).for_each(|(times, time)| times.push(time));
        }
    }
    Ok(times.map(Samples::new))
}

pub(super) fn timed<T>(work: impl FnOnce() -> Result<T>) -> Result<Duration> {
    let begun = Instant::now();
    work()?;
    Ok(begun.elapsed())
}
