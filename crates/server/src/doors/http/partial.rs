//! Parts of an answer that does not change any more, and whether the client has it already.

use axum::http::HeaderMap;
use axum::http::header::{IF_NONE_MATCH, IF_RANGE, RANGE};

/// What of the answer is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Whole,
    /// The client has it.
    Nothing,
    /// From here up to there, the last one included.
    Part {
        first: u64,
        last: u64,
    },
    /// A part that is not there.
    Missing,
}

/// As the head of a request says it, of an answer with this tag and length. Several ranges, and
/// what is no range in bytes, mean the whole, as HTTP allows.
pub(super) fn wanted(headers: &HeaderMap, tag: &str, len: u64) -> Wanted {
    if knows(headers, tag) {
        return Wanted::Nothing;
    }
    // A field that is no text is still there, and does not hold.
    if headers.get_all(IF_RANGE).iter().any(|known| known.as_bytes() != tag.as_bytes()) {
        return Wanted::Whole;
    }
    range(headers).and_then(|range| part(range, len)).unwrap_or(Wanted::Whole)
}

/// What follows the unit, if that is bytes and no other line asks for more.
fn range(headers: &HeaderMap) -> Option<&str> {
    let mut lines = headers.get_all(RANGE).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else { return None };
    let (unit, range) = line.to_str().ok()?.split_once('=')?;
    unit.eq_ignore_ascii_case("bytes").then(|| range.trim())
}

/// Whether the client has the answer with this tag. A proxy that packed it on the way has called
/// the tag weak, which is enough here and not for a part.
fn knows(headers: &HeaderMap, tag: &str) -> bool {
    let is_it = |known: &[u8]| known.strip_prefix(b"W/").unwrap_or(known) == tag.as_bytes();
    // Tags of others may have bytes that are no text.
    headers.get_all(IF_NONE_MATCH).iter().map(|list| list.as_bytes().trim_ascii()).any(|list| {
        list == b"*" || list.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).any(is_it)
    })
}

/// `first-last`, `first-` or `-count`.
fn part(range: &str, len: u64) -> Option<Wanted> {
    let (first, last) = range.split_once('-')?;
    let (first, last) = match (first, last) {
        ("", count) => (len.saturating_sub(number(count)?), u64::MAX),
        (first, "") => (number(first)?, u64::MAX),
        (first, last) => (number(first)?, number(last)?),
    };
    match first {
        // The last before the first is no range.
        _ if first > last => None,
        _ if first >= len => Some(Wanted::Missing),
        _ => Some(Wanted::Part { first, last: last.min(len - 1) }),
    }
}

fn number(digits: &str) -> Option<u64> {
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn check(range: &str, len: u64, want: Wanted) {
        let mut headers = HeaderMap::new();
        headers.insert(RANGE, range.parse().unwrap());
        assert_eq!(wanted(&headers, "\"t\"", len), want, "{range} of {len}");
    }

    #[test]
    fn a_range_is_a_part_or_is_missing_or_means_the_whole() {
        check("bytes=0-0", 10, Wanted::Part { first: 0, last: 0 });
        check("Bytes=0-0", 10, Wanted::Part { first: 0, last: 0 });
        check("bytes=2-", 10, Wanted::Part { first: 2, last: 9 });
        check("bytes=2-99", 10, Wanted::Part { first: 2, last: 9 });
        check("bytes=-3", 10, Wanted::Part { first: 7, last: 9 });
        check("bytes=-99", 10, Wanted::Part { first: 0, last: 9 });
        for missing in ["bytes=10-", "bytes=10-12", "bytes=-0"] {
            check(missing, 10, Wanted::Missing);
        }
        check("bytes=0-", 0, Wanted::Missing);
        for whole in [
            "bytes=3-2",
            "bytes=20-3",
            "bytes=0-1,4-5",
            "lines=1-2",
            "bytes 1-2",
            "bytes=x-",
            "bytes=+1-2",
            "bytes=-",
        ] {
            check(whole, 10, Wanted::Whole);
        }
    }

    #[test]
    fn a_tag_that_is_known_needs_no_answer_and_one_that_changed_the_whole() {
        let mut headers = HeaderMap::new();
        headers.insert(RANGE, "bytes=1-2".parse().unwrap());
        headers.insert(IF_RANGE, "\"old\"".parse().unwrap());
        assert_eq!(wanted(&headers, "\"t\"", 10), Wanted::Whole);
        headers.insert(IF_RANGE, "\"t\"".parse().unwrap());
        assert_eq!(wanted(&headers, "\"t\"", 10), Wanted::Part { first: 1, last: 2 });
        headers.insert(IF_NONE_MATCH, "\"old\", \"t\"".parse().unwrap());
        assert_eq!(wanted(&headers, "\"t\"", 10), Wanted::Nothing);
    }

    #[test]
    fn a_tag_is_known_in_whatever_line_and_however_weak_but_for_a_part_it_is_strong() {
        let with = |lines: &[&str]| {
            let mut headers = HeaderMap::new();
            lines.iter().for_each(|line| _ = headers.append(IF_NONE_MATCH, line.parse().unwrap()));
            wanted(&headers, "\"t\"", 10)
        };
        for known in [&["*"][..], &["W/\"t\""], &["\"a\",W/\"t\" , \"b\""], &["\"a\"", "\"t\""]] {
            assert_eq!(with(known), Wanted::Nothing, "{known:?}");
        }
        for other in
            [&[][..], &["\"a, *, b\""], &["\"T\""], &["t"], &["W/"], &["\"t"], &["w/\"t\""]]
        {
            assert_eq!(with(other), Wanted::Whole, "{other:?}");
        }
        let mut headers = HeaderMap::new();
        headers.insert(RANGE, "bytes=1-2".parse().unwrap());
        headers.insert(IF_RANGE, "W/\"t\"".parse().unwrap());
        assert_eq!(wanted(&headers, "\"t\"", 10), Wanted::Whole);
    }

    #[test]
    fn tags_that_are_no_text_and_several_are_compared_all_the_same() {
        let bytes = |bytes: &[u8]| HeaderValue::from_bytes(bytes).unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(RANGE, "bytes=1-2".parse().unwrap());
        headers.insert(IF_RANGE, bytes(b"\"\xfc\""));
        assert_eq!(wanted(&headers, "\"t\"", 10), Wanted::Whole, "it does not hold");
        headers.insert(IF_RANGE, bytes(b"\"t\""));
        headers.append(IF_RANGE, bytes(b"\"old\""));
        assert_eq!(wanted(&headers, "\"t\"", 10), Wanted::Whole, "one of two does not hold");
        headers.insert(IF_NONE_MATCH, bytes(b"\"\xfc\", \"t\""));
        assert_eq!(wanted(&headers, "\"t\"", 10), Wanted::Nothing);
    }

    #[test]
    fn two_lines_of_ranges_mean_the_whole() {
        let mut headers = HeaderMap::new();
        headers.insert(RANGE, "bytes=1-2".parse().unwrap());
        headers.append(RANGE, "bytes=4-5".parse().unwrap());
        assert_eq!(wanted(&headers, "\"t\"", 10), Wanted::Whole);
    }
}
