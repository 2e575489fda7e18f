//! Lossy UTF-8 decoding of bytes that arrive in chunks.
//!
//! An invalid byte does not affect its neighbours: each maximal invalid sequence becomes one
//! U+FFFD, exactly as `String::from_utf8_lossy` does for the whole input. A character split over
//! two chunks is held back until its last byte arrives.

use std::{ops::Range, str};

/// The longest character in bytes.
const LONGEST: usize = 4;

/// How many bytes at the end of `bytes` begin a character that more bytes could complete: 0 to 3.
pub fn unfinished(bytes: &[u8]) -> usize {
    let from = bytes.len().saturating_sub(LONGEST - 1);
    (from..bytes.len()).find(|&at| is_beginning(&bytes[at..])).map_or(0, |at| bytes.len() - at)
}

/// The character that a cut before `bytes[at]` would split, if any.
pub fn character_across(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let is_character = |range: &Range<usize>| {
        let text = bytes.get(range.clone()).and_then(|bytes| str::from_utf8(bytes).ok());
        text.is_some_and(|text| text.chars().count() == 1)
    };
    let starts = at.saturating_sub(LONGEST - 1)..at;
    let mut ranges = starts.flat_map(|start| (at + 1..=start + LONGEST).map(move |end| start..end));
    ranges.find(is_character)
}

/// The characters of `bytes`, and the first byte of each invalid sequence as an error, each with its
/// length in bytes.
pub(crate) fn characters(bytes: &[u8]) -> impl Iterator<Item = (usize, Result<char, u8>)> {
    bytes.utf8_chunks().flat_map(|chunk| {
        let valid = chunk.valid().chars().map(|character| (character.len_utf8(), Ok(character)));
        let invalid = chunk.invalid();
        valid.chain(invalid.first().map(|byte| (invalid.len(), Err(*byte))))
    })
}

/// Whether more bytes could turn these into one character.
fn is_beginning(bytes: &[u8]) -> bool {
    str::from_utf8(bytes)
        .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(chunks: &[&[u8]]) -> String {
        let (mut held, mut text) = (Vec::new(), String::new());
        for chunk in chunks {
            held.extend_from_slice(chunk);
            let rest = held.split_off(held.len() - unfinished(&held));
            text.push_str(&String::from_utf8_lossy(&held));
            held = rest;
        }
        text.push_str(&String::from_utf8_lossy(&held));
        text
    }

    #[test]
    fn a_character_in_two_chunks_is_one_character() {
        assert_eq!(decode(&[b"caf\xC3", b"\xA9!"]), "café!");
        assert_eq!(decode(&[b"\xF0", b"\x9F", b"\x98", b"\x80"]), "😀");
    }

    #[test]
    fn an_invalid_byte_does_not_affect_its_neighbours() {
        assert_eq!(decode(&[b"a\xFFb"]), "a\u{FFFD}b");
        assert_eq!(decode(&[b"\xE2\x82", b"a"]), "\u{FFFD}a");
        assert_eq!(decode(&[b"\xE2", b"\xE2\x82\xAC"]), "\u{FFFD}€");
        assert_eq!(decode(&[b"\xED", b"\xA0", b"\x80"]), "\u{FFFD}\u{FFFD}\u{FFFD}");
    }

    #[test]
    fn a_character_that_never_ends_is_one_invalid_sequence() {
        assert_eq!(decode(&[b"a\xF0\x9F", b"\x98"]), "a\u{FFFD}");
    }

    #[test]
    fn an_unfinished_character_differs_from_an_invalid_one() {
        let cases: [(&[u8], usize); 7] = [
            (b"", 0),
            (b"abc", 0),
            ("é".as_bytes(), 0),
            (b"a\xC3", 1),
            (b"\xF0\x9F\x98", 3),
            (b"a\x80", 0),
            (b"\xF0\x80", 0),
        ];
        for (bytes, want) in cases {
            assert_eq!(unfinished(bytes), want, "{bytes:x?}");
        }
    }

    #[test]
    fn a_cut_within_a_character_is_seen_and_one_within_invalid_bytes_is_not() {
        assert_eq!(character_across("a€b".as_bytes(), 2), Some(1..4));
        assert_eq!(character_across("a€b".as_bytes(), 3), Some(1..4));
        assert_eq!(character_across("a€b".as_bytes(), 1), None);
        assert_eq!(character_across("a€b".as_bytes(), 4), None);
        assert_eq!(character_across(b"a\xE2\x82b", 2), None);
        assert_eq!(character_across(b"a\xE2\x82", 2), None);
    }
}
