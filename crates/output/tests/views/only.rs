//! One of two streams reads like a log of that stream alone, with offsets of the whole log.

use std::{io, ops::Range};

use lastbyte_output::views::{
    Read, Source,
    lines::{self, Lines},
    raw::{self, Raw, Segment},
    search::{FoundLine, Hit, Match, Query, search},
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

impl Source for Split {
    fn end(&self) -> u64 {
        self.log.end()
    }

    fn dropped(&self) -> &[Range<u64>] {
        self.log.dropped()
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<Read> {
        let Some((wanted, rest)) = self.wanted[at as usize..].split_first() else {
            return Ok(Read::Bytes(0));
        };
        let run = 1 + rest.iter().take_while(|other| *other == wanted).count();
        if *wanted {
            let size = into.len().min(run);
            self.log.read_at(at, &mut into[..size])
        } else {
            Ok(Read::Other { until: at + run as u64 })
        }
    }
}

impl Split {
    /// A log in which every `E` is of the other stream.
    fn without_e(log: &[u8]) -> Self {
        let wanted = log.iter().map(|byte| *byte != b'E').collect();
        Self { log: Chopped::new(log.to_vec()), wanted }
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
        let alone = Chopped::new(bytes);
        let both = Both { only: &split, alone: &alone, offsets: &offsets, max_bytes };
        both.check_lines(|source| lines::first(source, 9, max_bytes).unwrap());
        both.check_lines(|source| lines::last(source, 9, max_bytes).unwrap());
        both.check_text();
        both.check_search();
    }
}

#[test]
fn a_segment_of_one_stream_spans_the_other() {
    let segment = Segment::Bytes { range: 0..6, bytes: b"ooo".to_vec() };
    let want = Raw { segments: vec![segment], next: 6 };
    assert_eq!(raw::since(&Split::without_e(b"oEoEEo"), 0, 100).unwrap(), want);
}

#[test]
fn one_stream_is_searched_across_the_other_with_offsets_of_the_log() {
    let found = search(&Split::without_e(b"reEEEady\nE\nno"), &query("e.*y|ea")).unwrap();
    let line = FoundLine { range: 0..9, text: b"ready".to_vec() };
    let hits = vec![Hit { text: 1..5, range: 1..8 }];
    let want = Match { number: Some(0), line, hits, before: vec![], after: vec![] };
    assert_eq!((found.matches, found.next), (vec![want], 11));
}
