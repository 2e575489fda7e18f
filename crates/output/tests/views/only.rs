//! One of two streams reads like a log of that stream alone, with offsets of the whole log.

use std::ops::Range;

use lastbyte_output::views::{
    Only, Run, Slice, Source,
    lines::{self, Lines},
    search::{Query, search},
    text::text,
};
use proptest::prelude::*;

use crate::chopped::{Chopped, output, whole};
use crate::search::query;

/// A log, and which of its bytes belong to the wanted stream.
#[derive(Debug, Clone)]
struct Split {
    log: Chopped,
    wanted: Vec<bool>,
}

impl Split {
    fn run_at(&self, at: u64) -> Run {
        let from = at as usize;
        let wanted = self.wanted[from];
        let until = self.wanted[from..].iter().position(|other| *other != wanted);
        let until = until.map_or(self.wanted.len(), |len| from + len) as u64;
        if wanted { Run::Wanted { until } } else { Run::Other { until } }
    }

    /// The bytes of the wanted stream and their offsets in the log.
    fn alone(&self) -> (Vec<u8>, Vec<u64>) {
        let bytes = self.log.bytes.iter().zip(0..).zip(&self.wanted);
        bytes.filter(|(_, wanted)| **wanted).map(|(byte, _)| byte).unzip()
    }
}

fn split() -> impl Strategy<Value = Split> {
    let runs = prop::collection::vec(1..30_usize, 1..20);
    (whole(output()), runs).prop_map(|(log, runs)| {
        let runs = runs.iter().cycle().zip([true, false].iter().cycle());
        let wanted = runs.flat_map(|(len, wanted)| vec![*wanted; *len]);
        Split { wanted: wanted.take(log.bytes.len()).collect(), log }
    })
}

/// One stream as a view of the log, and the same stream as a log of its own.
struct Both<'a> {
    only: &'a dyn Source,
    alone: &'a dyn Source,
    offsets: &'a [u64],
    max_bytes: usize,
}

impl Both<'_> {
    fn in_log(&self, range: &Range<u64>) -> Range<u64> {
        self.offsets[range.start as usize]..self.offsets[range.end as usize - 1] + 1
    }

    fn check_lines(&self, view: impl Fn(&dyn Source) -> Lines) {
        let got = view(self.only).lines.into_iter().map(|line| (line.text, line.range));
        let want = view(self.alone).lines.into_iter();
        let want = want.map(|line| (line.text, self.in_log(&line.range)));
        assert_eq!(got.collect::<Vec<_>>(), want.collect::<Vec<_>>());
    }

    fn check_text(&self) {
        let view =
            |source: &dyn Source| text(source, 0..source.end(), self.max_bytes).unwrap().lines;
        let got = view(self.only).into_iter().map(|line| (line.text, line.range));
        let want = view(self.alone).into_iter();
        let want = want.map(|line| (line.text, self.in_log(&line.range)));
        assert_eq!(got.collect::<Vec<_>>(), want.collect::<Vec<_>>());
    }

    fn check_search(&self) {
        let limits = Query { max_matches: 10, max_scanned: 1000, ..query("[ab]+.?") };
        let query = Query { before: 1, after: 1, max_bytes: self.max_bytes, ..limits };
        let mut want = search(self.alone, &query).unwrap().matches;
        for found in &mut want {
            let context = found.before.iter_mut().chain(&mut found.after);
            for line in context.chain([&mut found.line]) {
                line.range = self.in_log(&line.range);
            }
            for hit in &mut found.hits {
                hit.range = self.in_log(&hit.range);
            }
        }
        assert_eq!(search(self.only, &query).unwrap().matches, want);
    }
}

proptest! {
    #[test]
    fn one_stream_reads_like_that_stream_alone(split in split(), max_bytes in 0..400_usize) {
        let (bytes, offsets) = split.alone();
        let (only, alone) = (Only::new(&split.log, |at| split.run_at(at)), Slice::new(&bytes));
        let both = Both { only: &only, alone: &alone, offsets: &offsets, max_bytes };
        both.check_lines(|source| lines::first(source, 9, max_bytes).unwrap());
        both.check_lines(|source| lines::last(source, 9, max_bytes).unwrap());
        both.check_text();
        both.check_search();
    }
}
