use base64_simd::STANDARD;
use proptest::prelude::*;

use super::*;

const ID: &str = "01997f6e-0000-7000-8000-00000000000a";

/// A log in memory.
struct Slice {
    bytes: Vec<u8>,
    dropped: Vec<Range<u64>>,
}

impl Slice {
    fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self { bytes: bytes.into(), dropped: Vec::new() }
    }

    fn without(mut self, range: Range<u64>) -> Self {
        self.dropped.push(range);
        self
    }

    fn shown(&self, tokens: u64) -> String {
        excerpt(self, 0..u64::MAX, Budget::new(Some(tokens)).bytes(), ID).unwrap()
    }
}

impl Source for Slice {
    fn end(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn dropped(&self) -> &[Range<u64>] {
        &self.dropped
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<Read> {
        if let Some(gone) = self.dropped.iter().find(|gone| gone.contains(&at)) {
            return Ok(Read::Dropped(gone.clone()));
        }
        let next_gone = self.dropped.iter().map(|gone| gone.start).find(|start| *start > at);
        let until = next_gone.unwrap_or(self.end());
        let available = &self.bytes[at.min(until) as usize..until as usize];
        let count = available.len().min(into.len());
        into[..count].copy_from_slice(&available[..count]);
        Ok(Read::Bytes(count))
    }
}

/// The ranges that a text names as folded.
fn folds(shown: &str) -> Vec<Range<u64>> {
    let after = shown.split("[folded: bytes ").skip(1);
    let range = |text: &str| {
        let (start, rest) = text.split_once("..").unwrap();
        let (end, _) = rest.split_once(';').unwrap();
        start.parse().unwrap()..end.parse().unwrap()
    };
    after.map(range).collect()
}

/// Reads a range by the calls that a client would make.
fn fetched(source: &Slice, range: &Range<u64>, budget: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut at = range.start;
    while at < range.end {
        let page = raw_page(source, at..range.end, budget).unwrap();
        assert_eq!(page.range.start, at, "nothing was dropped");
        match page.content {
            Raw::Text(text) => {
                assert!(text.len() <= budget);
                bytes.extend(text.into_bytes());
            }
            Raw::Base64(text) => {
                assert!(text.len() <= budget);
                bytes.extend(STANDARD.decode_to_vec(text).unwrap());
            }
        }
        assert!(page.range.end > at, "it goes on");
        at = page.range.end;
    }
    bytes
}

fn check(bytes: Vec<u8>, tokens: u64) {
    let source = Slice::new(bytes);
    let budget = Budget::new(Some(tokens)).bytes();
    let shown = source.shown(tokens);
    assert!(shown.len() <= budget, "{} of {budget}", shown.len());
    let folds = folds(&shown);
    assert!(folds.len() <= 1);
    for fold in folds {
        let want = &source.bytes[fold.start as usize..fold.end as usize];
        assert_eq!(fetched(&source, &fold, budget), want);
        let valid = str::from_utf8(&source.bytes);
        assert!(valid.is_ok() || !shown.is_empty());
        if let Ok(text) = valid {
            assert!(text.is_char_boundary(fold.start as usize), "{fold:?}");
            assert!(text.is_char_boundary(fold.end as usize), "{fold:?}");
            // Unless the command has written that character itself.
            assert!(text.contains('\u{FFFD}') || !shown.contains('\u{FFFD}'));
        }
    }
}

#[test]
fn output_that_fits_is_shown_as_it_is() {
    for text in ["", "a\n", "a\nb\n", "é\n\n"] {
        assert_eq!(Slice::new(text).shown(400), text);
    }
    assert_eq!(Slice::new("no newline").shown(400), "no newline\n");
    assert_eq!(Slice::new("\x1b[31mred\x1b[0m\n 1%\r100%\n").shown(400), "red\n100%\n");
}

#[test]
fn long_output_has_its_beginning_its_end_and_the_call_for_the_rest() {
    let lines: String = (0..10_000).map(|nth| format!("line {nth}\n")).collect();
    let shown = Slice::new(lines.as_str()).shown(400);
    assert!(shown.starts_with("line 0\nline 1\n"), "{shown}");
    assert!(shown.ends_with("line 9998\nline 9999\n"), "{shown}");
    let fold = folds(&shown).remove(0);
    let length = fold.end - fold.start;
    let call = format!(
        "read_output {{\"process_id\":\"{ID}\",\"offset\":{},\"length\":{length}}}",
        fold.start
    );
    assert!(shown.contains(&call), "{shown}");
    let (before, after) = shown.split_once('[').unwrap();
    assert_eq!(before, &lines[..fold.start as usize]);
    let (_, after) = after.rsplit_once("]\n").unwrap();
    assert_eq!(after, &lines[fold.end as usize..]);
}

#[test]
fn a_fold_shows_lines_that_look_like_errors_with_their_offsets() {
    let mut lines: String = (0..100_000).map(|nth| format!("compiling {nth}\n")).collect();
    let at = lines.find("compiling 50000").unwrap();
    lines.insert_str(at, "src/lib.rs:7: error: expected `;`\n");
    let shown = Slice::new(lines).shown(8000);
    let want = format!("[  byte {at}: src/lib.rs:7: error: expected `;`]\n");
    assert!(shown.contains(&want), "{shown}");
}

#[test]
fn no_more_than_ten_lines_of_a_fold_are_shown() {
    let lines: String = (0..100_000).map(|nth| format!("error {nth}\n")).collect();
    let shown = Slice::new(lines).shown(8000);
    let hints: Vec<_> = shown.lines().filter(|line| line.starts_with("[  byte ")).collect();
    assert_eq!(hints.len(), 10, "{hints:?}");
}

#[test]
fn what_was_dropped_is_named_where_it_was() {
    let source = Slice::new("a\nbbbb\nc\n").without(2..7);
    assert_eq!(source.shown(400), "a\n[dropped: bytes 2..7 are gone]\nc\n");
}

#[test]
fn a_line_that_is_repeated_is_shown_once() {
    let source = Slice::new("y\n".repeat(100_000));
    assert_eq!(source.shown(400), "y\n[the line above 99999 more times: bytes 2..200000]\n");
    assert_eq!(Slice::new("y\n".repeat(3)).shown(400), "y\ny\ny\n");
}

#[test]
fn one_long_line_is_cut_between_characters() {
    for character in ["x", "é", "€", "😀"] {
        for more in 0..4 {
            check(format!("{}{}", "a".repeat(more), character.repeat(300_000)).into(), 400);
        }
    }
}

#[test]
fn a_page_of_text_says_where_the_next_one_starts() {
    let lines: String = (0..1000).map(|nth| format!("line {nth}\n")).collect();
    let source = Slice::new(lines.as_str());
    let (mut at, mut all) = (0, String::new());
    while at < source.end() {
        let page = text_page(&source, at..u64::MAX, 1200, ID).unwrap();
        assert!(page.len() <= 1200);
        all.push_str(page.split("[folded").next().unwrap());
        at = folds(&page).first().map_or(source.end(), |rest| rest.start);
    }
    assert_eq!(all, lines);
}

#[test]
fn the_last_lines_are_as_many_as_are_asked_for() {
    let source = Slice::new("a\nb\nc\n");
    let last = |count| last_lines(&source, count, 1200, ID).unwrap();
    assert!(last(2).ends_with("]\nb\nc\n") && last(2).contains("bytes 0..2"), "{}", last(2));
    assert_eq!(last(3), "a\nb\nc\n");
    assert_eq!(last(9), "a\nb\nc\n");
}

#[test]
fn dropped_bytes_are_skipped_and_named_by_a_page_of_bytes() {
    let source = Slice::new("abcdefgh").without(2..5);
    let page = raw_page(&source, 0..8, 1200).unwrap();
    assert_eq!((page.range, page.content), (0..2, Raw::Text("ab".into())));
    let page = raw_page(&source, 2..8, 1200).unwrap();
    assert_eq!((page.dropped, page.range), (Some(2..5), 5..8));
}

/// Output as commands write it, and as they should not.
fn outputs() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        "[ -~]{0,80}\n".prop_map(String::into_bytes),
        "(é|😀|€|a){0,60}\n".prop_map(String::into_bytes),
        Just(b"error: it failed\n".to_vec()),
        Just(b"\x1b[32mok\x1b[0m 10%\r 50%\r100%\n".to_vec()),
        prop::collection::vec(any::<u8>(), 0..200),
        (1usize..40_000, any::<char>()).prop_map(|(count, one)| {
            one.to_string().repeat(count / one.len_utf8()).into_bytes()
        }),
    ];
    prop::collection::vec((line, 1usize..200), 0..40).prop_map(|lines| {
        let repeated = lines.into_iter().map(|(line, count)| {
            let count = if line.len() > 1000 { 1 } else { count };
            line.repeat(count)
        });
        repeated.collect::<Vec<_>>().concat()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn every_answer_is_within_its_budget_and_every_fold_can_be_fetched(
        bytes in outputs(),
        tokens in prop_oneof![Just(400u64), 400u64..3000, Just(8000), Just(20_000)],
    ) {
        check(bytes, tokens);
    }

    #[test]
    fn pages_of_bytes_are_the_bytes(bytes in outputs(), budget in 1200usize..9000) {
        let source = Slice::new(bytes);
        let all = 0..source.end();
        prop_assert_eq!(fetched(&source, &all, budget), source.bytes);
    }

    #[test]
    fn a_range_that_was_dropped_does_not_break_a_budget(
        bytes in outputs(),
        start in 0.0..1.0f64,
        part in 0.0..1.0f64,
    ) {
        let length = bytes.len() as f64;
        let start = (length * start) as u64;
        let end = start + ((length - start as f64) * part) as u64;
        let source = Slice::new(bytes);
        let source = if start < end { source.without(start..end) } else { source };
        prop_assert!(source.shown(400).len() <= 1200);
    }
}
