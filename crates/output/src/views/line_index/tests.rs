use std::cell::Cell;

use proptest::collection::vec;
use proptest::prelude::*;

use super::super::{Read, Slice};
use super::*;

fn counted(source: &dyn Source) -> LineIndex {
    let mut index = LineIndex::default();
    index.extend(source, u64::MAX).unwrap();
    index
}

fn starts(
    index: &LineIndex,
    source: &dyn Source,
    place: Place,
    count: usize,
) -> (u64, Vec<u64>, u64) {
    let found = index.find(source, place, count).unwrap();
    (found.first, found.offsets, found.end)
}

#[test]
fn a_line_is_found_by_its_number_and_by_an_offset_in_it() {
    let source = Slice::new(b"one\ntwo\n\nfour");
    let index = counted(&source);
    assert_eq!((index.lines(), index.counted()), (4, 13));
    assert_eq!(starts(&index, &source, Place::Line(1), 2), (1, vec![4, 8], 9));
    assert_eq!(starts(&index, &source, Place::Line(3), 9), (3, vec![9], 13));
    assert_eq!(starts(&index, &source, Place::Offset(7), 1), (1, vec![4], 8));
    assert_eq!(starts(&index, &source, Place::Offset(8), 1), (2, vec![8], 9));
    assert_eq!(starts(&index, &source, Place::Line(4), 1), (0, vec![], 0));
    assert_eq!(starts(&index, &source, Place::Offset(13), 1), (0, vec![], 0));
}

#[test]
fn a_dropped_range_is_one_line_and_ends_the_one_before() {
    let source = Slice::new(b"one\ntwo\nthree\nfour\n").without(6..15);
    let index = counted(&source);
    assert_eq!(index.lines(), 4);
    assert_eq!(starts(&index, &source, Place::Line(0), 9), (0, vec![0, 4, 6, 15], 19));
}

#[test]
fn a_range_that_grew_is_counted_again_and_what_comes_before_it_is_not() {
    let text = "0123456\n".repeat(200_000);
    let mut index = counted(&Slice::new(text.as_bytes()).without(800_000..800_008));
    assert_eq!(index.lines(), 200_000);
    let marks = index.marks.iter().filter(|mark| mark.offset <= 800_000).count();
    let grown = Slice::new(text.as_bytes()).without(800_000..1_200_000);
    index.extend(&grown, 0).unwrap();
    assert_eq!(index.marks.len(), marks);
    index.extend(&grown, u64::MAX).unwrap();
    assert_eq!(index.lines(), 100_000 + 1 + 50_000);
    assert_eq!(starts(&index, &grown, Place::Offset(1_000_000), 2).1, [800_000, 1_200_000]);
}

#[test]
fn there_are_never_more_marks_than_the_bound() {
    let mut index = LineIndex { stride: 8, ..LineIndex::default() };
    let text = "0123456\n".repeat(MOST_MARKS * 5);
    let source = Slice::new(text.as_bytes());
    // A chunk has at most one mark, so that chunks have to be small for a small stride.
    while index.counted() < source.end() {
        index.extend(&source, 8).unwrap();
    }
    assert!(index.marks.len() < MOST_MARKS && index.stride > 8, "{}", index.marks.len());
    let line = MOST_MARKS as u64 * 4 + 3;
    assert_eq!(starts(&index, &source, Place::Line(line), 1), (line, vec![line * 8], line * 8 + 8));
}

/// Counts what is read of it.
struct Watched<'a> {
    source: Slice<'a>,
    read: Cell<u64>,
}

impl Source for Watched<'_> {
    fn end(&self) -> u64 {
        self.source.end()
    }

    fn dropped(&self) -> &[Range<u64>] {
        self.source.dropped()
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<Read> {
        self.read.set(self.read.get() + into.len() as u64);
        self.source.read_at(at, into)
    }
}

#[test]
fn a_search_reads_little_of_long_lines_and_of_many() {
    const LINE: usize = 200 << 10;
    let mut text = vec![b'x'; 80 << 20];
    text.iter_mut().skip(LINE - 1).step_by(LINE).for_each(|byte| *byte = b'\n');
    // One line of 20 MB, and short ones behind it.
    text[40 << 20..60 << 20].fill(b'x');
    let len = text.len();
    text[len - 1000..].iter_mut().step_by(2).for_each(|byte| *byte = b'\n');
    let source = Watched { source: Slice::new(&text), read: Cell::default() };
    let index = counted(&source);
    let read = |place, count| {
        let before = source.read.get();
        let found = index.find(&source, place, count).unwrap();
        (found, source.read.get() - before)
    };
    let few = 2 * STRIDE + (1 << 17);
    for place in [Place::Offset(50 << 20), Place::Offset(len as u64 - 1), Place::Line(0)] {
        let (found, read) = read(place, 1);
        assert_eq!(found.offsets.len(), 1, "{place:?}");
        assert!(read <= few, "{place:?} took {read} bytes");
    }
    let (long, _) = read(Place::Offset(50 << 20), 1);
    assert!(long.end - long.offsets[0] > 20 << 20, "{long:?}");
    // All lines in as many requests as that takes, each with so much work.
    let (mut next, mut offsets) = (0, Vec::new());
    while next < index.lines() {
        let (found, read) = read(Place::Line(next), usize::MAX);
        assert!(read <= MOST_READ + few, "{read} bytes");
        next += found.offsets.len() as u64;
        offsets.extend(found.offsets);
    }
    let starts = memchr_iter(b'\n', &text).map(|at| at as u64 + 1);
    let starts = [0].into_iter().chain(starts).filter(|start| *start < source.end());
    assert_eq!(offsets, starts.collect::<Vec<_>>());
}

/// Where every line begins, by looking at each byte.
fn simply(bytes: &[u8], dropped: &Range<u64>) -> Vec<u64> {
    let mut begin = 0;
    let mut all = Vec::new();
    for at in 0..bytes.len() as u64 {
        let ends = match at {
            at if dropped.contains(&at) => at + 1 == dropped.end,
            at => {
                let is_cut = !dropped.is_empty() && at + 1 == dropped.start;
                is_cut || bytes[at as usize] == b'\n'
            }
        };
        if at == begin {
            all.push(begin);
        }
        if ends {
            begin = at + 1;
        }
    }
    all
}

proptest! {
    #[test]
    fn the_index_agrees_with_a_look_at_each_byte(
        text in vec(prop_oneof![Just(b'\n'), Just(b'x')], 0..300),
        cuts in (0u64..300, 0u64..300),
        steps in vec(1u64..40, 1..9),
        place in 0u64..320,
    ) {
        let len = text.len() as u64;
        let (a, b) = (cuts.0.min(len), cuts.1.min(len));
        let dropped = a.min(b)..a.max(b);
        let source = Slice::new(&text);
        let source = if dropped.is_empty() { source } else { source.without(dropped.clone()) };
        let mut index = LineIndex { stride: 16, ..LineIndex::default() };
        for step in steps.iter().cycle() {
            if index.counted() >= len { break; }
            index.extend(&source, *step).unwrap();
        }
        let want = simply(&text, &dropped);
        prop_assert_eq!(index.lines(), want.len() as u64);
        let all = index.find(&source, Place::Line(0), usize::MAX).unwrap();
        prop_assert_eq!(&all.offsets, &want);
        let by_line = index.find(&source, Place::Line(place), 3).unwrap();
        let wanted = want.iter().skip(place as usize).take(3).copied();
        prop_assert_eq!(by_line.offsets, wanted.collect::<Vec<_>>());
        let by_offset = index.find(&source, Place::Offset(place), 1).unwrap();
        let wanted = want.iter().rfind(|start| **start <= place && place < len);
        prop_assert_eq!(by_offset.offsets, wanted.into_iter().copied().collect::<Vec<_>>());
    }
}
