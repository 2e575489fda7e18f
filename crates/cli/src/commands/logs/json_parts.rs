//! The content of `logs --json`: text as far as it is UTF-8, else base64, as `follow` of the API has it.

use std::ops::Range;

use lastbyte_output::decode::unfinished;
use serde_json::{Value, json};

/// Splits pieces of a log into text and other bytes.
#[derive(Debug, Default)]
pub(super) struct JsonParts {
    /// The start of a character whose end has not come.
    held: Vec<u8>,
    /// Where it ends in the log.
    held_to: u64,
}

/// Whether more may come after a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    More,
    Nothing,
}

impl JsonParts {
    /// The next piece: what can be printed of it, and where that lies in the log. At most one part is text,
    /// and it comes before what is not.
    pub(super) fn split(
        &mut self,
        range: Range<u64>,
        piece: &[u8],
        rest: Rest,
    ) -> Vec<(Range<u64>, Value)> {
        let mut parts = Vec::new();
        let mut bytes = std::mem::take(&mut self.held);
        if self.held_to != range.start && !bytes.is_empty() {
            // The end of the character was dropped.
            let start = self.held_to - bytes.len() as u64;
            parts.push((start..self.held_to, base64(&bytes)));
            bytes.clear();
        }
        let start = range.start - bytes.len() as u64;
        bytes.extend_from_slice(piece);
        // Not so for one of two streams: where each of its bytes lies is not known.
        let is_contiguous = bytes.len() as u64 == range.end - start;
        if is_contiguous && rest == Rest::More {
            self.held = bytes.split_off(bytes.len() - unfinished(&bytes));
            self.held_to = range.end;
        }
        let end = range.end - self.held.len() as u64;
        let text = bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid());
        match text.len() {
            0 if bytes.is_empty() && !self.held.is_empty() => {}
            len if len == bytes.len() => parts.push((start..end, text_content(text))),
            0 => parts.push((start..end, base64(&bytes))),
            _ if !is_contiguous => parts.push((start..end, base64(&bytes))),
            len => {
                let middle = start + len as u64;
                parts.push((start..middle, text_content(text)));
                parts.push((middle..end, base64(&bytes[len..])));
            }
        }
        parts
    }
}

fn text_content(text: &str) -> Value {
    json!({ "view": "raw", "text": text })
}

fn base64(bytes: &[u8]) -> Value {
    json!({ "view": "raw", "base64": base64_simd::STANDARD.encode_to_string(bytes) })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(
        parts: &mut JsonParts,
        (range, piece, rest): (Range<u64>, &[u8], Rest),
        want: &[(Range<u64>, Value)],
    ) {
        assert_eq!(parts.split(range, piece, rest), want);
    }

    #[test]
    fn a_character_is_held_until_it_is_whole() {
        let mut parts = JsonParts::default();
        check(&mut parts, (0..2, b"a\xC3", Rest::More), &[(0..1, text_content("a"))]);
        check(&mut parts, (2..2, b"", Rest::More), &[]);
        check(&mut parts, (2..3, b"\xA9", Rest::More), &[(1..3, text_content("é"))]);
        check(&mut parts, (3..4, b"\xC3", Rest::Nothing), &[(3..4, base64(b"\xC3"))]);
    }

    #[test]
    fn a_character_whose_end_was_dropped_is_not_lost() {
        let mut parts = JsonParts::default();
        check(&mut parts, (0..1, b"\xC3", Rest::More), &[]);
        let want = [(0..1, base64(b"\xC3")), (9..10, text_content("x"))];
        check(&mut parts, (9..10, b"x", Rest::More), &want);
    }

    #[test]
    fn one_of_two_streams_is_not_split() {
        let mut parts = JsonParts::default();
        check(&mut parts, (0..9, b"a\xC3", Rest::More), &[(0..9, base64(b"a\xC3"))]);
        check(&mut parts, (9..19, b"abc", Rest::More), &[(9..19, text_content("abc"))]);
        check(&mut parts, (19..30, b"", Rest::More), &[(19..30, text_content(""))]);
    }

    fn bytes_of(content: &Value) -> Vec<u8> {
        match (content["text"].as_str(), content["base64"].as_str()) {
            (Some(text), None) => text.into(),
            (None, Some(text)) => base64_simd::STANDARD.decode_to_vec(text).unwrap(),
            _ => panic!("{content}"),
        }
    }

    proptest! {
        #[test]
        fn every_byte_comes_once_and_in_order(
            pieces in prop::collection::vec(
                prop::collection::vec(prop::sample::select(b"a\xC3\xA9\xF0\x9F\xFF".to_vec()), 0..6),
                1..6,
            ),
        ) {
            let (mut parts, mut read, mut place) = (JsonParts::default(), Vec::new(), 0);
            for (number, piece) in pieces.iter().enumerate() {
                let rest = if number + 1 < pieces.len() { Rest::More } else { Rest::Nothing };
                let end = place + piece.len() as u64;
                for (range, content) in parts.split(place..end, piece, rest) {
                    prop_assert_eq!(range.start, read.len() as u64);
                    read.extend(bytes_of(&content));
                    prop_assert_eq!(range.end, read.len() as u64);
                }
                place = end;
            }
            prop_assert_eq!(read, pieces.concat());
        }
    }
}
