//! The text view compared with a model that has the whole log and a regex for sequences.

use std::ops::Range;
use std::sync::LazyLock;

use lastbyte_output::views::{
    Source,
    text::{Repeats, Text, TextLine, text},
};
use proptest::prelude::*;
use regex::Regex;

use crate::chopped::{Chopped, with_holes};

/// Text, cursor moves and sequences; unfinished sequences only before a line end or a sequence.
pub(crate) fn coloured() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        6 => "[ab]{0,3}".prop_map(String::into_bytes),
        4 => Just(b"\n".to_vec()),
        4 => prop::sample::select(vec!["\r", "\x08", "\x1b[K", "\x1b[2K", "\x1b[2G", "\x1b[2D", "\x1b[C"])
            .prop_map(|text| text.as_bytes().to_vec()),
        1 => prop::sample::select(vec!["é", "😀", "\t", "\x07", "\x1b[1;31m", "\x1b[?25l", "\x1b(B"])
            .prop_map(|text| text.as_bytes().to_vec()),
        1 => prop::sample::select(vec![
            b"\x1b]0;t\x07".to_vec(), b"\x1b]8;;u\x1b\\".to_vec(), b"\x1bPq\x1b\\".to_vec(),
            b"\x9b31m".to_vec(), b"\x9dt\x9c".to_vec(), b"\x1b[12\n".to_vec(), b"\x1b]0;t\n".to_vec(),
            b"\x1b[12\x1b[K".to_vec(), b"\xFF".to_vec(), b"\xE2\x82".to_vec(),
        ]),
    ];
    prop::collection::vec(part, 0..60).prop_map(|parts| parts.concat())
}

/// The characters of a line; a stray C1 byte becomes its two-character escape.
fn characters(line: &[u8]) -> String {
    let mut text = String::new();
    for chunk in line.utf8_chunks() {
        text.push_str(chunk.valid());
        match chunk.invalid() {
            [] => {}
            [byte @ 0x80..0xA0] => text.extend(['\x1b', char::from(byte - 0x40)]),
            _ => text.push('\u{FFFD}'),
        }
    }
    text
}

static SEQUENCE: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = concat!(
        r"^(?:\x1b\[(?<number>[0-9]*)(?<command>[KGCD])|\x1b\[[ -?]*[@-~]?",
        r"|\x1b[\]PX^_][^\x07\x1b]*\x07?|\x1b[ -/]*[0-~]?)",
    );
    Regex::new(pattern).unwrap()
});

/// What a line finally shows.
fn reading(line: &[u8]) -> String {
    let (characters, mut cells, mut cursor) = (characters(line), Vec::new(), 0_usize);
    let mut rest = characters.as_str();
    while let Some(character) = rest.chars().next() {
        let found = SEQUENCE.captures(rest);
        rest = &rest[found.as_ref().map_or(character.len_utf8(), |found| found[0].len())..];
        let number = found.as_ref().and_then(|found| found.name("number")?.as_str().parse().ok());
        let command = found.as_ref().map(|found| found.name("command").map(|name| name.as_str()));
        match (character, command) {
            (_, Some(Some("K"))) if number == Some(2) => (cells, cursor) = (Vec::new(), 0),
            (_, Some(Some("K"))) => cells.truncate(cursor),
            (_, Some(Some("G"))) => cursor = (number.unwrap_or(1) - 1).min(cells.len()),
            (_, Some(Some("C"))) => cursor = (cursor + number.unwrap_or(1)).min(cells.len()),
            (_, Some(Some("D"))) => cursor -= number.unwrap_or(1).min(cursor),
            (_, Some(_)) => {}
            ('\r', None) => cursor = 0,
            ('\x08', None) => cursor -= cursor.min(1),
            ('\x07', None) => {}
            (character, None) => {
                cells.splice(cursor..(cursor + 1).min(cells.len()), [character]);
                cursor += 1;
            }
        }
    }
    cells.into_iter().collect()
}

fn model(source: &Chopped) -> Text {
    let mut lines: Vec<TextLine> = Vec::new();
    for (start, kept) in source.kept() {
        let (mut at, first) = (start, lines.len());
        for line in kept.split_inclusive(|byte| *byte == b'\n') {
            let range = at..at + line.len() as u64;
            at = range.end;
            let text = reading(line.strip_suffix(b"\n").unwrap_or(line));
            if text.is_empty() && !line.ends_with(b"\n") {
                continue;
            }
            let repeated = lines[first..].last_mut().filter(|last| last.text == text);
            let Some(TextLine { repeats, .. }) = repeated else {
                lines.push(TextLine { text, range, cut: None, repeats: None });
                continue;
            };
            let (count, start) =
                repeats.as_ref().map_or((0, range.start), |seen| (seen.count, seen.range.start));
            *repeats = Some(Repeats { count: count + 1, range: start..range.end });
        }
    }
    Text { lines, rest: None }
}

/// The texts, each with the range in which all its repetitions are.
pub(crate) fn unfolded_with_ranges(lines: &[TextLine]) -> Vec<(String, Range<u64>)> {
    let end = |line: &TextLine| line.repeats.as_ref().map_or(line.range.end, |all| all.range.end);
    lines.iter().map(|line| (line.text.clone(), line.range.start..end(line))).collect()
}

/// The texts with repeats expanded.
fn unfolded(lines: &[TextLine]) -> Vec<String> {
    let times = |line: &TextLine| 1 + line.repeats.as_ref().map_or(0, |repeats| repeats.count);
    lines.iter().flat_map(|line| vec![line.text.clone(); times(line) as usize]).collect()
}

proptest! {
    #[test]
    fn the_text_matches_the_model(source in with_holes(coloured())) {
        prop_assert_eq!(text(&source, 0..source.end(), usize::MAX / 2).unwrap(), model(&source));
    }

    #[test]
    fn any_chunking_reads_the_same(
        source in with_holes("[a\\x1b\\x07\\x18\\r\\n\\x08\\[\\]PK0-2 é;]{0,80}".prop_map(|text| {
            text.into_bytes().into_iter().map(|byte| if byte == b';' { 0x9B } else { byte }).collect()
        })),
        max_bytes in 0..100_usize,
    ) {
        let at_once = source.clone().in_chunks(vec![usize::MAX]);
        let want = text(&at_once, 0..source.end(), max_bytes).unwrap();
        prop_assert_eq!(text(&source, 0..source.end(), max_bytes).unwrap(), want);
    }

    #[test]
    fn reading_on_from_the_rest_returns_all_lines(
        source in with_holes(coloured()),
        max_bytes in 0..30_usize,
    ) {
        let (mut lines, mut range) = (Vec::new(), Some(0..source.end()));
        while let Some(next) = range {
            let view = text(&source, next.clone(), max_bytes).unwrap();
            prop_assert!(view.lines.iter().map(|line| line.text.len() + 1).sum::<usize>() <= max_bytes + 1);
            lines.extend(view.lines);
            range = view.rest;
            prop_assert!(range.as_ref().is_none_or(|rest| rest.start > next.start));
        }
        let all = unfolded(&model(&source).lines);
        let got = unfolded(&lines);
        prop_assert_eq!(got.len(), all.len());
        prop_assert!(all.iter().zip(&got).all(|(whole, text)| whole.starts_with(text.as_str())));
    }
}
