//! Lines compared with a model that splits the whole log.

use lastbyte_output::views::{
    Source,
    lines::{Line, first, last},
};
use proptest::prelude::*;

use crate::chopped::{Chopped, output, with_holes};

/// All lines of the kept parts.
fn all_lines(source: &Chopped) -> Vec<Line> {
    let mut lines = Vec::new();
    for (mut at, kept) in source.kept() {
        for line in kept.split_inclusive(|byte| *byte == b'\n') {
            let range = at..at + line.len() as u64;
            at = range.end;
            let text = line.strip_suffix(b"\n").unwrap_or(line).to_vec();
            lines.push(Line { range, text, cut: None });
        }
    }
    lines
}

/// The first lines that fit.
fn fitting<'a>(lines: impl Iterator<Item = &'a Line>, max_bytes: usize) -> Vec<Line> {
    let mut used = 0;
    let fits = |line: &&Line| {
        used += line.text.len() + 1;
        used <= max_bytes + 1
    };
    lines.take_while(fits).cloned().collect()
}

fn check(got: &[Line], want: &[Line], longest: Option<&Line>) {
    match (got, want) {
        ([line], []) => {
            let whole = longest.unwrap();
            let cut = line.cut.clone().unwrap();
            assert_eq!(line.range, whole.range);
            assert!(whole.text.starts_with(&line.text) || whole.text.ends_with(&line.text));
            assert!(cut.start == whole.range.start || cut.end == whole.range.end);
        }
        _ => assert_eq!(got, want),
    }
}

proptest! {
    #[test]
    fn lines_match_the_model(
        source in with_holes(output()),
        count in 0..20_u64,
        max_bytes in prop_oneof![0..40_usize, 0..3000_usize],
    ) {
        let all = all_lines(&source);
        let got = first(&source, count, max_bytes).unwrap();
        let want = fitting(all.iter().take(count as usize), max_bytes);
        check(&got.lines, &want, all.first());
        let after = got.lines.last().map_or(0, |line| line.range.end);
        match got.rest {
            Some(rest) => prop_assert!(rest.start >= after && rest.end == source.end()),
            None => prop_assert_eq!(got.lines.len(), all.len()),
        }
    }

    #[test]
    fn the_last_lines_match_the_model(
        source in with_holes(output()),
        count in 0..20_u64,
        max_bytes in prop_oneof![0..40_usize, 0..3000_usize],
    ) {
        let all = all_lines(&source);
        let got = last(&source, count, max_bytes).unwrap();
        let mut want = fitting(all.iter().rev().take(count as usize), max_bytes);
        want.reverse();
        check(&got.lines, &want, all.last());
        let start = got.lines.first().map_or(source.end(), |line| line.range.start);
        prop_assert_eq!(got.rest, (start > 0).then_some(0..start));
    }

    #[test]
    fn the_last_lines_over_many_blocks_match_the_model(
        times in 1..9000_usize,
        count in 0..12_000_u64,
        max_bytes in 0..400_000_usize,
    ) {
        let bytes = b"0123456789\n\n0123456789012345678901234567890123\n".repeat(times);
        let source = Chopped::new(bytes.clone());
        let got = last(&source, count, max_bytes).unwrap();
        let texts = bytes.split(|byte| *byte == b'\n').rev().skip(1).take(count as usize);
        let mut used = 0;
        let want = texts.take_while(|text| { used += text.len() + 1; used <= max_bytes + 1 }).count();
        prop_assert_eq!(got.lines.len(), want.max(usize::from(count > 0)));
        prop_assert!(got.lines.last().is_none_or(|line| line.range.end == bytes.len() as u64));
    }
}
