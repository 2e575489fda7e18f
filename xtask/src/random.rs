//! Random choices that a seed repeats.

use std::time::Duration;

/// splitmix64.
#[derive(Clone)]
pub(crate) struct Random(u64);

impl Random {
    /// Streams of one seed do not depend on each other.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let mut own = Self(seed ^ stream.wrapping_mul(0xd134_2543_de82_ef95));
        own.next();
        own
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From `from` up to and without `to`.
    pub(crate) fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.next() % (to - from)
    }

    pub(crate) fn percent(&mut self, chance: u64) -> bool {
        self.between(0, 100) < chance
    }

    pub(crate) fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.between(0, choices.len() as u64) as usize]
    }

    pub(crate) fn exponential(&mut self, mean: Duration) -> Duration {
        // Never 0, of which there is no logarithm.
        let unit = ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64;
        mean.mul_f64(-unit.ln())
    }
}
