//! Random things that are the same again from the same seed.

pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Self {
        // Nothing but zeros would follow a zero.
        Self(seed.max(1))
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// At most so many bytes.
    pub fn bytes(&mut self, most: usize) -> Vec<u8> {
        (0..self.below(most + 1)).map(|_| self.next() as u8).collect()
    }

    /// Flips, cuts out, puts in or doubles something.
    pub fn spoil(&mut self, line: &mut Vec<u8>) {
        let at = self.below(line.len().max(1)).min(line.len().saturating_sub(1));
        match self.below(4) {
            _ if line.is_empty() => line.push(b'{'),
            0 => line[at] ^= 1 << self.below(8),
            1 => _ = line.drain(at..(at + 1 + self.below(9)).min(line.len())),
            2 => line.insert(at, self.below(256) as u8),
            _ => line.extend_from_within(at..),
        }
    }
}
