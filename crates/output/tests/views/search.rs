//! Search compared with a model that has all lines of the log.

use std::ops::Range;

use lastbyte_output::views::{
    Chunk, Source,
    search::{Found, FoundLine, Hit, Match, Query, Reading, Stopped, Watcher, compile, search},
};
use proptest::prelude::*;

use crate::chopped::{Chopped, output, with_holes};

fn pattern() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "a",
        "ab|bc",
        "a.*c",
        "^b",
        "c$",
        "x{30,}",
        "^$",
        "é",
        "(?-u)\\xA9",
        "q",
        // Empty matches: at the beginning of a line, and between other matches.
        "b$|^",
        "[ab]*",
    ])
}

/// A query without limits and context.
pub(crate) fn query(pattern: &str) -> Query {
    Query {
        regex: compile(pattern).unwrap(),
        reading: Reading::Raw,
        from: 0,
        before: 0,
        after: 0,
        max_matches: usize::MAX,
        max_bytes: usize::MAX,
        max_scanned: u64::MAX,
    }
}

/// The lines of each kept part; none is longer than 64 KiB.
fn all_lines(source: &Chopped) -> Vec<Vec<FoundLine>> {
    let lines = |(start, kept): (u64, &[u8])| {
        let mut at = start;
        let line = |line: &[u8]| {
            let range = at..at + line.len() as u64;
            at = range.end;
            let text = match line {
                [text @ .., b'\r', b'\n'] | [text @ .., b'\n'] | text => text.to_vec(),
            };
            FoundLine { range, text }
        };
        kept.split_inclusive(|byte| *byte == b'\n').map(line).collect()
    };
    source.kept().into_iter().map(lines).collect()
}

fn hits(query: &Query, line: &FoundLine) -> Vec<Hit> {
    let place = |range: Range<usize>| {
        line.range.start + range.start as u64..line.range.start + range.end as u64
    };
    let found = query.regex.find_iter(&line.text).take(64);
    found.map(|found| Hit { text: found.range(), range: place(found.range()) }).collect()
}

/// Lines of which three are shorter than half of a step.
fn short_lines() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec("[a-c]{0,6}\n", 0..100).prop_map(|lines| lines.concat().into_bytes())
}

/// A line of several parts with a needle of up to 8 KiB near or across a border, and the range of
/// the needle.
fn long_line() -> impl Strategy<Value = (Vec<u8>, Range<u64>)> {
    let filler = prop::sample::select(vec!["x", "é", "€", "x€"]);
    let parts = (filler, 1..4_usize, 0..9000_usize, 0..8191_usize);
    parts.prop_map(|(filler, border, back, dashes)| {
        let mut bytes = filler.repeat(4 * 64 * 1024 / filler.len()).into_bytes();
        // Between characters, so that none is split.
        let at = (border * 64 * 1024 + 500 - back) / filler.len() * filler.len();
        let needle = format!("<{}>", "-".repeat(dashes));
        let range = at as u64..(at + needle.len()) as u64;
        bytes.splice(at..at, needle.into_bytes());
        (bytes, range)
    })
}

/// Every match with its context: the lines before it not yet returned, and the lines after it up
/// to the next match.
fn model(source: &Chopped, query: &Query) -> Vec<Match> {
    let mut matches = Vec::new();
    for part in all_lines(source) {
        let first_gone = source.dropped.first();
        let is_counted = first_gone.is_none_or(|gone| part[0].range.start < gone.start);
        let hits: Vec<_> = part.iter().map(|line| hits(query, line)).collect();
        let mut given = 0;
        for index in (0..part.len()).filter(|index| !hits[*index].is_empty()) {
            let from = index.saturating_sub(query.before.into()).max(given);
            let next = hits[index + 1..].iter().position(|hits| !hits.is_empty());
            let until = next.map_or(part.len(), |next| index + 1 + next);
            let until = until.min(index + 1 + usize::from(query.after));
            given = until;
            matches.push(Match {
                number: is_counted.then_some(index as u64),
                line: part[index].clone(),
                hits: hits[index].clone(),
                before: part[from..index].to_vec(),
                after: part[index + 1..until].to_vec(),
            });
        }
    }
    matches
}

proptest! {
    #[test]
    fn a_search_matches_the_model(
        source in with_holes(output()),
        pattern in pattern(),
        before in 0..4_u8,
        after in 0..4_u8,
    ) {
        let query = Query { before, after, ..query(pattern) };
        let found = search(&source, &query).unwrap();
        prop_assert_eq!(found.stopped, Stopped::End);
        prop_assert_eq!(&found.dropped, &source.dropped);
        prop_assert_eq!(found.matches, model(&source, &query));
    }

    #[test]
    fn continuing_from_the_cursor_finds_all_matches(
        source in with_holes(output()),
        pattern in pattern(),
        max_matches in 1..4_usize,
        max_scanned in 1..200_u64,
        max_bytes in 0..100_usize,
        before in 0..3_u8,
        after in 0..3_u8,
    ) {
        let whole = query(pattern);
        let (mut lines, mut from) = (Vec::new(), 0);
        loop {
            let context = Query { before, after, ..whole.clone() };
            let limits = Query { from, max_matches, max_scanned, max_bytes, ..context };
            let Found { matches, next, stopped, .. } = search(&source, &limits).unwrap();
            lines.extend(matches.into_iter().map(|found| (found.line, found.hits)));
            if stopped == Stopped::End {
                break;
            }
            prop_assert!(next > from);
            from = next;
        }
        let want = model(&source, &whole).into_iter().map(|found| (found.line, found.hits));
        prop_assert_eq!(lines, want.collect::<Vec<_>>());
    }

    #[test]
    fn a_search_in_steps_has_the_numbers_and_context_of_one_search(
        source in with_holes(short_lines()),
        pattern in pattern(),
        max_scanned in 60..120_u64,
        before in 0..4_u8,
        after in 0..4_u8,
    ) {
        let whole = Query { before, after, ..query(pattern) };
        let (mut matches, mut dropped) = (Vec::new(), Vec::new());
        let (mut from, mut lines) = (0, Some(0));
        loop {
            let page = search(&source, &Query { from, max_scanned, ..whole.clone() }).unwrap();
            let sum = |number: Option<u64>| Some(lines? + number?);
            let numbered = |found: Match| Match { number: sum(found.number), ..found };
            matches.extend(page.matches.into_iter().map(numbered));
            dropped.extend(page.dropped);
            if page.stopped == Stopped::End {
                break;
            }
            prop_assert!(page.next > from);
            (from, lines) = (page.next, sum(page.next_number));
        }
        prop_assert_eq!(matches, model(&source, &whole));
        prop_assert_eq!(&dropped, &source.dropped);
    }

    #[test]
    fn a_match_in_a_long_line_is_found_once_wherever_it_lies(
        (bytes, want) in long_line(),
        sizes in prop::collection::vec(900..70_000_usize, 1..4),
        max_scanned in prop::sample::select(vec![1, 70_000, u64::MAX]),
    ) {
        let source = Chopped::new(bytes).in_chunks(sizes);
        let (mut found, mut from, mut stopped) = (Vec::new(), 0, Stopped::Work);
        while stopped != Stopped::End {
            let query = Query { from, max_scanned, ..query("<-*>") };
            let page = search(&source, &query).unwrap();
            for Match { line, hits, .. } in page.matches {
                prop_assert!(hits.iter().all(|hit| line.text[hit.text.clone()].starts_with(b"<")));
                found.extend(hits.into_iter().map(|hit| hit.range));
            }
            prop_assert!(page.next > from || page.stopped == Stopped::End);
            (from, stopped) = (page.next, page.stopped);
        }
        prop_assert_eq!(found, std::slice::from_ref(&want));
        let mut watcher = Watcher::new(compile("<-*>").unwrap(), Reading::Plain);
        let seen = watcher.look_through(&source, 0..source.end()).unwrap();
        prop_assert_eq!(seen.map(|seen| seen.range), Some(want));
    }

    #[test]
    fn a_watcher_sees_the_first_match_in_any_chunks(
        bytes in output(),
        sizes in prop::collection::vec(1..9_usize, 1..5),
        pattern in prop::sample::select(vec!["ab", "ca?b", "€", "^b"]),
    ) {
        let source = Chopped::new(bytes);
        let query = query(pattern);
        let mut watcher = Watcher::new(query.regex.clone(), Reading::Raw);
        let (mut at, mut turn, mut seen) = (0, 0, None);
        while seen.is_none() && at < source.bytes.len() {
            turn += 1;
            let end = source.bytes.len().min(at + sizes[turn % sizes.len()]);
            seen = watcher.feed(Chunk { at: at as u64, bytes: &source.bytes[at..end] });
            at = end;
        }
        let want = model(&source, &query).first().map(|found| found.hits[0].range.start);
        prop_assert_eq!(seen.map(|seen| seen.range.start), want);
    }

    #[test]
    fn a_watcher_sees_no_match_across_a_dropped_range_in_any_steps(
        source in with_holes(output()),
        pattern in prop::sample::select(vec!["ab", "a[^q]*c", "€", "^b"]),
        looks in prop::collection::vec(1..40_u64, 1..5),
    ) {
        let query = query(pattern);
        let mut watcher = Watcher::new(query.regex.clone(), Reading::Raw);
        let (mut at, mut turn, mut seen) = (0, 0, None);
        while seen.is_none() && at < source.end() {
            turn += 1;
            let end = source.end().min(at + looks[turn % looks.len()]);
            seen = watcher.look_through(&source, at..end).unwrap();
            at = end;
        }
        let want = model(&source, &query).first().map(|found| found.hits[0].range.start);
        prop_assert_eq!(seen.map(|seen| seen.range.start), want);
    }
}

#[test]
fn a_later_part_of_a_long_line_is_not_the_start_of_a_line() {
    let line = ["a".as_bytes(), &[b'x'; 300_000]].concat();
    let source = Chopped::new(line);
    assert_eq!(search(&source, &query("^x")).unwrap().matches, []);
    let mut watcher = Watcher::new(compile("^x").unwrap(), Reading::Plain);
    assert_eq!(watcher.look_through(&source, 0..source.end()).unwrap(), None);
}

#[test]
fn a_line_that_matched_is_not_searched_again_for_context() {
    let overwritten = [[b'y'; 20].as_slice(), b"\na\rb\nd\n"].concat();
    let parts = [[b'y'; 200_000].as_slice(), b"\na", &[b'x'; 100_000], b"\nd\n"].concat();
    for (log, pattern, max_scanned) in [(overwritten, "a", 24), (parts, "^a|^x", 300_000)] {
        let source = Chopped::new(log);
        let whole = Query { reading: Reading::Plain, before: 2, ..query(pattern) };
        let first = search(&source, &Query { max_scanned, ..whole.clone() }).unwrap();
        assert_eq!((first.matches.len(), first.stopped), (1, Stopped::Work));
        let rest = search(&source, &Query { from: first.next, ..whole }).unwrap();
        assert_eq!((rest.matches.len(), rest.stopped), (0, Stopped::End), "{pattern}");
    }
}
