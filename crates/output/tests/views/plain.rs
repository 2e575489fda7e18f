//! Plain search compared with a search over the text view, and with texts whose places are known.

use std::ops::Range;

use lastbyte_output::views::{
    Source,
    search::{Found, Match, Query, Reading, Stopped, Watcher, compile, search},
    text::text,
};
use proptest::prelude::*;

use crate::chopped::{Chopped, output, with_holes};
use crate::search::query;
use crate::text::{coloured, unfolded_with_ranges};

fn plain(pattern: &str) -> Query {
    Query { reading: Reading::Plain, ..query(pattern) }
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let escapes = "[ab\\x1b\\x07\\x18\\r\\n\\x08\\[\\]PKGC0-2m é;]{0,80}".prop_map(|text| {
        let stray = |byte| if byte == b';' { 0x9B } else { byte };
        text.into_bytes().into_iter().map(stray).collect()
    });
    prop_oneof![3 => coloured(), 2 => escapes, 1 => output(), 1 => prop::collection::vec(any::<u8>(), 0..60)]
}

fn pattern() -> impl Strategy<Value = &'static str> {
    let patterns =
        vec!["a", "ab|b", "^.", ".$", "^$", "a.*b", "\u{FFFD}", "^[ab]+$", "b$|^", "[ab]*"];
    prop::sample::select(patterns)
}

/// The matches of texts that were not overwritten: the last one in each line.
fn last_in_each_line(matches: &[Match]) -> Vec<&Match> {
    let is_last = |nth: usize| {
        let next = matches.get(nth + 1);
        next.is_none_or(|next| next.line.range.start >= matches[nth].line.range.end)
    };
    matches.iter().enumerate().filter(|(nth, _)| is_last(*nth)).map(|(_, found)| found).collect()
}

/// A log in which each character of text occurs once, so that its place is known.
fn distinct() -> impl Strategy<Value = Vec<u8>> {
    let other = vec![
        "\r",
        "\n",
        "\r\n",
        "\x08",
        "\x1b[K",
        "\x1b[2K",
        "\x1b[2G",
        "\x1b[D",
        "\x1b[31m",
        "\x1b]0;t\x07",
    ];
    let part = prop_oneof![3 => Just(None), 2 => prop::sample::select(other).prop_map(Some)];
    prop::collection::vec(part, 0..60).prop_map(|parts| {
        let characters = ('\u{4E00}'..).map(String::from);
        let parts = parts.into_iter().zip(characters);
        parts
            .map(|(other, character)| other.map_or(character, str::to_owned))
            .collect::<String>()
            .into()
    })
}

/// The range of these characters, each of which is in the log once.
fn place(log: &[u8], characters: &[u8]) -> Range<u64> {
    let log = str::from_utf8(log).unwrap();
    let ranges = str::from_utf8(characters).unwrap().chars().map(|character| {
        let start = log.find(character).unwrap() as u64;
        start..start + character.len_utf8() as u64
    });
    ranges.reduce(|all, one| all.start.min(one.start)..all.end.max(one.end)).unwrap()
}

proptest! {
    #[test]
    fn a_plain_search_finds_what_a_search_of_the_rendered_text_finds(
        source in with_holes(bytes()),
        pattern in pattern(),
    ) {
        let query = plain(pattern);
        let found = search(&source, &query).unwrap();
        prop_assert_eq!(found.stopped, Stopped::End);
        prop_assert_eq!(&found.dropped, &source.dropped);
        let view = text(&source, 0..source.end(), usize::MAX / 2).unwrap();
        for (text, range) in unfolded_with_ranges(&view.lines) {
            let want: Vec<_> = query.regex.find_iter(text.as_bytes()).take(64).map(|hit| hit.range()).collect();
            // A folded line has only the range of all repetitions.
            let here = found.matches.iter().filter(|found| {
                found.line.text == text.as_bytes()
                    && range.start <= found.line.range.start
                    && found.line.range.end <= range.end
            });
            let hits: Vec<Vec<_>> =
                here.map(|found| found.hits.iter().map(|hit| hit.text.clone()).collect()).collect();
            prop_assert!(want.is_empty() == hits.is_empty() && (want.is_empty() || hits.contains(&want)));
        }
        for found in &found.matches {
            let Range { start, end } = found.line.range;
            prop_assert!(found.hits.iter().all(|hit| start <= hit.range.start && hit.range.end <= end));
        }
    }

    #[test]
    fn any_chunking_finds_the_same(
        source in with_holes(bytes()),
        pattern in pattern(),
        max_scanned in prop::sample::select(vec![1, 9, u64::MAX]),
    ) {
        let query = Query { before: 1, after: 1, max_scanned, ..plain(pattern) };
        let at_once = source.clone().in_chunks(vec![usize::MAX]);
        prop_assert_eq!(search(&source, &query).unwrap(), search(&at_once, &query).unwrap());
    }

    #[test]
    fn the_range_of_a_hit_is_exactly_that_of_its_characters(
        log in distinct(),
        sizes in prop::collection::vec(1..9_usize, 1..5),
        pattern in prop::sample::select(vec!["..", "^..?", ".$", "^.*[^q]$"]),
    ) {
        let source = Chopped::new(log.clone()).in_chunks(sizes);
        for Match { line, hits, .. } in search(&source, &plain(pattern)).unwrap().matches {
            for hit in hits {
                prop_assert_eq!(hit.range, place(&log, &line.text[hit.text]));
            }
        }
    }

    #[test]
    fn continuing_from_the_cursor_finds_every_line_that_matches(
        source in with_holes(bytes()),
        pattern in pattern(),
        max_matches in 1..4_usize,
        max_scanned in 1..200_u64,
        max_bytes in 0..100_usize,
        before in 0..3_u8,
    ) {
        let all = search(&source, &plain(pattern)).unwrap().matches;
        let (mut found, mut from) = (Vec::new(), 0);
        loop {
            let whole = Query { before, ..plain(pattern) };
            let limits = Query { from, max_matches, max_scanned, max_bytes, ..whole };
            let Found { matches, next, stopped, .. } = search(&source, &limits).unwrap();
            found.extend(matches.into_iter().map(|found| found.line));
            if stopped == Stopped::End {
                break;
            }
            prop_assert!(next > from);
            from = next;
        }
        // A page that starts within an overwritten line sees only the rest of that line.
        for want in last_in_each_line(&all) {
            let Range { start, end } = want.line.range;
            prop_assert!(found.iter().any(|line| line.range.start < end && start < line.range.end));
        }
    }

    #[test]
    fn a_watcher_sees_what_a_search_finds_in_any_steps(
        source in with_holes(bytes()),
        pattern in prop::sample::select(vec!["ab", "b{2}", "^a", "a0", "\u{FFFD}"]),
        looks in prop::collection::vec(1..9_u64, 1..5),
    ) {
        let mut watcher = Watcher::new(compile(pattern).unwrap(), Reading::Plain);
        let (mut at, mut turn, mut seen) = (0, 0, None);
        while seen.is_none() && at < source.end() {
            turn += 1;
            let end = source.end().min(at + looks[turn % looks.len()]);
            seen = watcher.look_through(&source, at..end).unwrap();
            at = end;
        }
        // The end of the log ends a character that a watcher still waits for.
        let seen = seen.or_else(|| watcher.end_line());
        let found = search(&source, &plain(pattern)).unwrap().matches;
        // It may have seen more: what a backspace has removed since.
        prop_assert!(seen.is_some() || found.is_empty());
    }

    #[test]
    fn a_search_from_within_a_sequence_or_a_character_does_not_see_it(
        before in "[a-f]{0,3}",
        cut in prop::sample::select(vec!["\x1b[1;31m", "\x1b]0;title\x07", "ě", "😀", "\x1b(B"]),
        after in "[g-m]{0,4}\n",
        at in any::<prop::sample::Index>(),
    ) {
        let log = format!("x\n{before}{cut}{after}");
        let from = (2 + before.len() + 1 + at.index(cut.len())) as u64;
        let source = Chopped::new(log.into_bytes());
        let query = Query { from, ..plain("^.*$") };
        let found = search(&source, &query).unwrap().matches;
        prop_assert_eq!(&found[0].line.text, after.trim_end().as_bytes());
        let mut watcher = Watcher::new(compile("^.*$").unwrap(), Reading::Plain);
        let seen = watcher.look_through(&source, from..source.end()).unwrap().unwrap();
        prop_assert_eq!(seen.text, after.trim_end().as_bytes());
    }
}

/// The texts of the matching lines.
fn texts(log: &[u8], query: &Query) -> Vec<String> {
    let found = search(&Chopped::new(log.to_vec()).in_chunks(vec![70_000]), query).unwrap();
    let text = |found: Match| String::from_utf8(found.line.text).unwrap();
    found.matches.into_iter().map(text).collect()
}

#[test]
fn a_match_in_a_long_coloured_line_is_found_wherever_it_lies() {
    let colours = "\x1b[31m€\x1b[0mx".repeat(20_000);
    for needle in ["needle", "nee\x1b[1mdle"] {
        for filler in [0, 25_530, 45_000] {
            let log = format!("{colours}{}{needle}{colours}\n", "y".repeat(filler));
            let source = Chopped::new(log.clone().into_bytes()).in_chunks(vec![900]);
            let found = search(&source, &plain("needle")).unwrap().matches;
            let ranges: Vec<_> =
                found.iter().flat_map(|found| &found.hits).map(|hit| hit.range.clone()).collect();
            let at = log.find(needle).unwrap() as u64;
            let want = at..at + needle.len() as u64;
            assert_eq!(ranges, std::slice::from_ref(&want), "after {filler}");
        }
    }
    assert_eq!(search(&Chopped::new(colours.into()), &plain("^x")).unwrap().matches, []);
}

#[test]
fn a_line_that_turns_out_to_be_coloured_after_64_kib_is_searched_once() {
    let log = format!("{}needle{}\x1b[31mneedle\x1b[0m\n", "x".repeat(65_530), "y".repeat(200));
    let found = search(&Chopped::new(log.into()), &plain("needle")).unwrap().matches;
    let starts: Vec<_> =
        found.iter().flat_map(|found| &found.hits).map(|hit| hit.range.start).collect();
    assert_eq!(starts, [65_530, 65_741]);
}

#[test]
fn a_progress_bar_without_an_end_is_searched_in_bounded_memory_and_reported_twice_at_most() {
    let bar: String = (0..20_000).map(|percent| format!("\rdone {percent:>6}")).collect();
    assert_eq!(texts(bar.as_bytes(), &plain("^done")), ["done      0", "done  19999"]);
    assert_eq!(texts(bar.as_bytes(), &plain("^done   7777$")), ["done   7777"]);
}

#[test]
fn an_overwritten_text_has_the_range_of_all_its_characters() {
    let check = |log: &[u8], text: &[u8], range: Range<u64>, hit: Range<u64>| {
        let found = search(&Chopped::new(log.to_vec()), &plain("a?b")).unwrap().matches;
        let line = &found[0].line;
        assert_eq!((line.text.as_slice(), line.range.clone()), (text, range), "{log:?}");
        assert_eq!(found[0].hits[0].range, hit);
    };
    // The `b` is left of the text before.
    check(b"ab\rx\x1b[2Ky\n", b"ab", 0..3, 0..2);
    check(b"cb\rx\x1b[2Ky\n", b"cb", 0..3, 1..2);
    check(b"c0b\rb\rxx\x1b[2Ky\n", b"c0b", 0..4, 2..3);
    // The cursor goes back to the `a` and forward over it, so nothing is overwritten before the line is erased.
    check(b"a\x1b[D\x1b[Cb\x1b[2Kx\n", b"ab", 0..11, 0..8);
}

#[test]
fn context_and_numbers_are_those_of_lines_and_not_of_overwritten_texts() {
    let query = Query { before: 1, ..plain("^b$") };
    let found = search(&Chopped::new(b"1\r2\r3\n\x1b[1mb\n".to_vec()), &query).unwrap().matches;
    let [found] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((found.number, found.before[0].text.as_slice()), (Some(1), b"3".as_slice()));
}
