//! A range dropped while a view reads: the source does not list it, but reads report it.

use std::{io, ops::Range};

use lastbyte_output::views::{
    Read, Source,
    head_tail::{coder, native},
    lines,
    search::{Query, search},
    text::text,
};
use proptest::prelude::*;

use crate::chopped::{Chopped, output, with_holes};
use crate::search::query;

struct Stale<'a>(&'a Chopped);

impl Source for Stale<'_> {
    fn end(&self) -> u64 {
        self.0.end()
    }

    fn dropped(&self) -> &[Range<u64>] {
        &[]
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<Read> {
        self.0.read_at(at, into)
    }
}

proptest! {
    #[test]
    fn a_range_dropped_during_a_read_is_reported_like_any_other(
        source in with_holes(output()),
        count in 0..20_u64,
        max_bytes in 0..400_usize,
    ) {
        let stale = Stale(&source);
        let whole = 0..source.end();
        let limits = Query { max_matches: 10, max_bytes, max_scanned: 1000, ..query("a|^$") };
        let query = Query { before: 1, after: 1, ..limits };
        prop_assert_eq!(coder(&stale).unwrap(), coder(&source).unwrap());
        let want = native(&source, 0, max_bytes).unwrap();
        prop_assert_eq!(native(&stale, 0, max_bytes).unwrap(), want);
        let want = lines::first(&source, count, max_bytes).unwrap();
        prop_assert_eq!(lines::first(&stale, count, max_bytes).unwrap(), want);
        let want = lines::last(&source, count, max_bytes).unwrap();
        prop_assert_eq!(lines::last(&stale, count, max_bytes).unwrap(), want);
        let want = text(&source, whole.clone(), max_bytes).unwrap();
        prop_assert_eq!(text(&stale, whole, max_bytes).unwrap(), want);
        prop_assert_eq!(search(&stale, &query).unwrap(), search(&source, &query).unwrap());
    }
}
