//! The bytes that `testchild` writes when only their count matters.
//!
//! Each byte is a function of its offset in the stream, without a short period, so a test can check
//! any range, and lost, duplicated or displaced bytes are always detected.

use std::ops::Range;

/// The byte of the pattern at `offset`.
pub fn pattern(offset: u64) -> u8 {
    word(offset / 8)[(offset % 8) as usize]
}

/// The bytes of the pattern in `range`.
pub fn pattern_bytes(range: Range<u64>) -> Vec<u8> {
    let first_word = range.start / 8;
    let skip = (range.start % 8) as usize;
    let len =
        usize::try_from(range.end.saturating_sub(range.start)).expect("the range fits into memory");
    let mut bytes = vec![0; (skip + len).next_multiple_of(8)];
    for (chunk, index) in bytes.chunks_exact_mut(8).zip(first_word..) {
        chunk.copy_from_slice(&word(index));
    }
    bytes.truncate(skip + len);
    bytes.drain(..skip);
    bytes
}

/// Eight bytes of the pattern: the finaliser of splitmix64, a bijection, so all words of a stream
/// differ.
fn word(index: u64) -> [u8; 8] {
    let mut mixed = index.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::{pattern, pattern_bytes};

    #[test]
    fn a_range_of_the_pattern_is_its_bytes_one_by_one() {
        for range in [0..0, 0..1, 3..8, 7..9, 8..24, 65_531..65_560] {
            let one_by_one: Vec<u8> = range.clone().map(pattern).collect();
            assert_eq!(pattern_bytes(range), one_by_one);
        }
    }

    #[test]
    fn a_displaced_part_of_the_pattern_differs() {
        let part = pattern_bytes(0..64);
        for displacement in [1, 8, 64, 4096, 65_536, 1 << 20, 1 << 32] {
            assert_ne!(part, pattern_bytes(displacement..displacement + 64));
        }
    }
}
