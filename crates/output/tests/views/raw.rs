//! Reading from cursor to cursor returns the whole log, for any chunks and budgets.

use crate::chopped::{Chopped, output, with_holes};
use lastbyte_output::views::{
    Source,
    raw::{Segment, since},
};
use proptest::prelude::*;

/// Everything a reader gets until its cursor no longer moves.
fn read_to_end(source: &Chopped, budgets: &[usize]) -> Vec<Segment> {
    let (mut segments, mut cursor) = (Vec::new(), 0);
    for budget in budgets.iter().cycle() {
        let raw = since(source, cursor, *budget).unwrap();
        if raw.next == cursor {
            break;
        }
        let read = raw.segments.iter().map(kept_len).sum::<usize>();
        assert!(read == *budget || (read < *budget && raw.next == source.end()));
        segments.extend(raw.segments);
        cursor = raw.next;
    }
    assert_eq!(cursor, source.end());
    segments
}

fn kept_len(segment: &Segment) -> usize {
    match segment {
        Segment::Bytes { bytes, .. } => bytes.len(),
        Segment::Dropped(_) => 0,
    }
}

proptest! {
    #[test]
    fn any_chunking_reads_back_the_same(
        source in with_holes(output()),
        budgets in prop::collection::vec(1..50_usize, 1..10),
    ) {
        let (mut kept, mut dropped, mut at) = (Vec::new(), Vec::new(), 0);
        for segment in read_to_end(&source, &budgets) {
            let range = match segment {
                Segment::Bytes { range, bytes } => {
                    prop_assert_eq!(range.end - range.start, bytes.len() as u64);
                    kept.extend(bytes);
                    range
                }
                Segment::Dropped(range) => {
                    dropped.push(range.clone());
                    range
                }
            };
            prop_assert_eq!(range.start, at);
            at = range.end;
        }
        let want: Vec<u8> = source.kept().into_iter().flat_map(|(_, bytes)| bytes).copied().collect();
        prop_assert_eq!(kept, want);
        prop_assert_eq!(dropped, source.dropped);
    }
}
