//! A whole log that is short enough to be part of the record of its process's ending.

use super::Stamp;

/// A longer log stays in its file.
pub(super) const MOST_BYTES: usize = 4096;
/// So does a log with more stamps, which take more space than its bytes.
pub(super) const MOST_STAMPS: usize = 64;

/// All bytes of a log and the stamps of its index.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShortLog {
    pub bytes: Vec<u8>,
    pub stamps: Vec<Stamp>,
}

impl ShortLog {
    pub fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Copies what is there from `at` on and returns how many bytes.
    pub(super) fn read(&self, at: u64, into: &mut [u8]) -> usize {
        let at = usize::try_from(at).unwrap_or(usize::MAX).min(self.bytes.len());
        let count = into.len().min(self.bytes.len() - at);
        into[..count].copy_from_slice(&self.bytes[at..at + count]);
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_as_far_as_it_goes() {
        let short = ShortLog { bytes: b"abcdef".to_vec(), stamps: Vec::new() };
        let mut into = [0; 3];
        assert_eq!((short.read(1, &mut into), &into), (3, b"bcd"));
        assert_eq!((short.read(4, &mut into), &into[..2]), (2, &b"ef"[..]));
        assert_eq!((short.read(6, &mut into), short.read(7, &mut into)), (0, 0));
    }
}
