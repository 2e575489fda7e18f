//! Head and tail as they are in the log: nothing is inserted, no character is split, and the
//! omitted part is named by its range.

use std::{io, ops::Range};

use super::super::{
    Source,
    mapped_bytes::{MappedBytes, SourcePart, last_bytes, read_parts},
};
use crate::decode::character_across;

/// How many bytes past a cut have to be read to know whether it would split a character.
const BEYOND: usize = 3;

/// The beginning and the end of a log. If the source shows all streams, the lengths of head,
/// omitted range and tail add up to its length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadTail {
    pub head: Vec<u8>,
    /// The range between head and tail, with all that was dropped there.
    pub omitted: Option<Range<u64>>,
    pub tail: Vec<u8>,
}

/// Everything from `from` on, at most `max_bytes`: half for the head, or more if a dropped range
/// makes the tail short. If everything fits, it is all in the head.
///
/// A cut is made at the end of a line if one lies within an eighth of the part's budget, and never
/// within a character; invalid UTF-8 is cut anywhere. Head and tail each stop at a dropped range,
/// uncut. The tail may use what the head leaves of the budget.
pub fn native(source: &dyn Source, from: u64, max_bytes: usize) -> io::Result<HeadTail> {
    let total = source.end();
    let (parts, next) = read_parts(source, from..total, max_bytes.saturating_add(BEYOND))?;
    let mut parts = parts.into_iter();
    let (mut head, after_head) = match parts.next() {
        Some(SourcePart::Kept(head)) => (head, parts.next()),
        other => (MappedBytes::default(), other),
    };
    let whole = next == total && after_head.is_none() && head.len() <= max_bytes;
    if whole {
        return Ok(HeadTail { head: head.into_bytes(), omitted: None, tail: vec![] });
    }
    let mut head_limit = max_bytes / 2;
    if after_head.is_some() {
        let tail = last_bytes(source, head.range().end..total, max_bytes)?;
        head_limit = head_limit.max(max_bytes - tail.len());
    }
    let cut = head_cut(head.bytes(), head_limit);
    let from = if head.is_empty() { from } else { head.offset(cut) };
    head.truncate(cut);
    let tail = tail(source, from..total, max_bytes - head.len())?;
    let omitted = from..if tail.is_empty() { total } else { tail.offset(0) };
    Ok(HeadTail { head: head.into_bytes(), omitted: Some(omitted), tail: tail.into_bytes() })
}

fn tail(source: &dyn Source, range: Range<u64>, limit: usize) -> io::Result<MappedBytes> {
    let mut tail = last_bytes(source, range, limit.saturating_add(BEYOND))?;
    let cut = tail_cut(tail.bytes(), limit);
    tail.keep_from(cut);
    Ok(tail)
}

/// Where to cut `bytes` so that at most `limit` of them are before the cut.
fn head_cut(bytes: &[u8], limit: usize) -> usize {
    if bytes.len() <= limit {
        return bytes.len();
    }
    let near = limit - limit / 8..limit;
    let line_end = bytes[near.clone()].iter().rposition(|byte| *byte == b'\n');
    match (line_end, character_across(bytes, limit)) {
        (Some(newline), _) => near.start + newline + 1,
        (None, Some(character)) => character.start,
        (None, None) => limit,
    }
}

/// Where to cut `bytes` so that at most `limit` of them are after the cut.
fn tail_cut(bytes: &[u8], limit: usize) -> usize {
    let Some(cut) = bytes.len().checked_sub(limit).filter(|cut| *cut > 0) else {
        return 0;
    };
    // A newline just before the cut: the cut is already at the start of a line.
    let near = cut - 1..cut + limit / 8;
    let line_end = bytes[near.clone()].iter().position(|byte| *byte == b'\n');
    match (line_end, character_across(bytes, cut)) {
        (Some(newline), _) => near.start + newline + 1,
        (None, Some(character)) => character.end,
        (None, None) => cut,
    }
}

#[cfg(test)]
mod tests {
    use super::{super::super::Slice, *};

    #[test]
    fn a_log_that_fits_is_not_cut() {
        for max_bytes in [6, 7, 100] {
            let view = native(&Slice::new("a\nbé\n".as_bytes()), 0, max_bytes).unwrap();
            let head = "a\nbé\n".as_bytes().to_vec();
            assert_eq!(view, HeadTail { head, omitted: None, tail: vec![] });
        }
    }

    fn check(input: &str, max_bytes: usize, want_head: &str, want_tail: &str) {
        let view = native(&Slice::new(input.as_bytes()), 0, max_bytes).unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let omitted = view.omitted.unwrap();
        assert_eq!((text(view.head).as_str(), text(view.tail).as_str()), (want_head, want_tail));
        assert_eq!(omitted, want_head.len() as u64..(input.len() - want_tail.len()) as u64);
    }

    #[test]
    fn a_view_from_a_cursor_shows_nothing_before_it() {
        let source = Slice::new(b"abcdefgh");
        let view = native(&source, 3, 100).unwrap();
        assert_eq!((view.head.as_slice(), view.omitted), (b"defgh".as_slice(), None));
        let view = native(&source, 3, 2).unwrap();
        assert_eq!(
            (view.head.as_slice(), view.tail.as_slice()),
            (b"d".as_slice(), b"h".as_slice())
        );
        assert_eq!(view.omitted, Some(4..7));
        let view = native(&source, 8, 100).unwrap();
        assert_eq!((view.head.as_slice(), view.omitted), (b"".as_slice(), None));
    }

    #[test]
    fn a_cut_splits_no_character() {
        check("€€€€", 8, "€", "€");
        check("a€€€", 8, "a€", "€");
        check("€€", 1, "", "");
        check("abcdef", 0, "", "");
    }

    #[test]
    fn a_cut_prefers_a_nearby_line_end() {
        check("abcdefg\nABCDEFGH\nhijklmno", 16, "abcdefg\n", "hijklmno");
        check(
            "0123456789abcdef012\n\nbcdefghijklmnop",
            32,
            "0123456789abcdef",
            "\nbcdefghijklmnop",
        );
        check("abcdef\n1ABCDEFGH2\nijklmno", 16, "abcdef\n1", "ijklmno");
        check(
            "abcdefg\nijklmno\nABCDEFGHIJKLMNOPQRST",
            32,
            "abcdefg\nijklmno\n",
            "EFGHIJKLMNOPQRST",
        );
        check("0123456789abcd\nfABCDEFGHIJKLMNOPQRST", 32, "0123456789abcd\n", "DEFGHIJKLMNOPQRST");
    }

    #[test]
    fn invalid_utf8_is_cut_anywhere() {
        let view = native(&Slice::new(&[0x80; 10]), 0, 4).unwrap();
        assert_eq!(
            (view.head, view.omitted, view.tail),
            (vec![0x80; 2], Some(2..8), vec![0x80; 2])
        );
    }

    #[test]
    fn a_dropped_range_is_omitted_even_if_the_rest_fits() {
        let view = native(&Slice::new(b"abcdefgh").without(2..4).without(5..6), 0, 100).unwrap();
        assert_eq!(
            (view.head.as_slice(), view.tail.as_slice()),
            (b"ab".as_slice(), b"gh".as_slice())
        );
        assert_eq!(view.omitted, Some(2..6));
    }

    #[test]
    fn the_kept_bytes_are_not_cut_if_they_fit() {
        for (gone, max_bytes) in [(6..7, 7), (1..2, 7), (2..5, 5)] {
            let view =
                native(&Slice::new(b"abcdefgh").without(gone.clone()), 0, max_bytes).unwrap();
            assert_eq!(view.omitted, Some(gone));
        }
    }

    #[test]
    fn a_log_without_kept_bytes_is_all_omitted() {
        let view = native(&Slice::new(b"abcd").without(0..4), 0, 100).unwrap();
        assert_eq!(view.omitted, Some(0..4));
    }
}
