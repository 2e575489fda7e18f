//! A log of one pebibyte, mostly dropped: no view iterates over a dropped range.

use std::{io, ops::Range};

use lastbyte_output::views::{
    Read, Source,
    head_tail::{coder, native},
    lines, raw,
    search::{Query, search},
    text::text,
};

use crate::search::query;

const END: u64 = 1 << 50;
const KEPT: u64 = 1 << 17;

/// Lines of 15 characters; only the head and the tail are kept.
struct Huge([Range<u64>; 1]);

impl Source for Huge {
    fn end(&self) -> u64 {
        END
    }

    fn dropped(&self) -> &[Range<u64>] {
        &self.0
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<Read> {
        let [gone] = &self.0;
        if gone.contains(&at) {
            return Ok(Read::Dropped(gone.clone()));
        }
        let border = if at < gone.start { gone.start } else { END };
        let count = into.len().min((border - at) as usize);
        for (byte, at) in into[..count].iter_mut().zip(at..) {
            *byte = if at % 16 == 15 { b'\n' } else { b'a' };
        }
        Ok(Read::Bytes(count))
    }
}

#[test]
fn a_dropped_range_is_one_step_for_every_view() {
    let gone = KEPT..END - KEPT;
    let source = Huge([gone.clone()]);

    let view = native(&source, 0, 1 << 20).unwrap();
    assert_eq!(view.omitted, Some(gone.clone()));
    assert_eq!((view.head.len(), view.tail.len()), (KEPT as usize, KEPT as usize));
    assert_eq!(coder(&source).unwrap().truncated.unwrap().omitted_bytes, END - 32768);

    let all = 2 * KEPT / 16;
    let last = lines::last(&source, u64::MAX, 1 << 20).unwrap();
    assert_eq!(last.lines.len() as u64, all);
    let first = lines::first(&source, u64::MAX, 1 << 20).unwrap();
    assert_eq!((first.lines.len() as u64, first.rest), (all, None));

    let read = text(&source, 0..END, 1 << 20).unwrap();
    let counts: Vec<_> =
        read.lines.iter().map(|line| line.repeats.as_ref().unwrap().count).collect();
    assert_eq!(counts, [all / 2 - 1, all / 2 - 1]);
    assert_eq!(raw::since(&source, KEPT, 1).unwrap().next, gone.end + 1);

    let limits = Query { max_matches: 1, max_bytes: 1000, ..query("b") };
    let query = Query { before: 1, after: 1, ..limits };
    assert_eq!(search(&source, &query).unwrap().next, END);
}
