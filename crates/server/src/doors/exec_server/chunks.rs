//! Where each chunk of output lies in the log, in four bytes a chunk.
//!
//! The bytes stay in the log. A chunk is the bytes of one stream within a range of it: usually the
//! whole range, and where two streams alternate quickly, two chunks share one range.

use std::ops::Range;

use lastbyte_output::log::Stream;

/// The bytes of one stream in a range of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chunk {
    pub(super) range: Range<u64>,
    pub(super) stream: Stream,
}

/// The chunks of a log, in order.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    /// The length of the range, and in its lowest bits the two flags below.
    entries: Vec<u32>,
    /// Where the range of every 64th chunk begins.
    marks: Vec<u64>,
}

const ERR: u32 = 1;
/// It has the same range as the one before it.
const SAME_RANGE: u32 = 2;
const FLAG_BITS: u32 = 2;
const MARK_EVERY: usize = 64;
/// The longest range of one chunk; a longer one becomes several.
const MOST_BYTES: u64 = (u32::MAX >> FLAG_BITS) as u64;

impl Chunks {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Adds a range that begins where the last one ended.
    pub(super) fn push(&mut self, mut range: Range<u64>, stream: Stream) {
        while !range.is_empty() {
            let end = range.end.min(range.start + MOST_BYTES);
            self.add(range.start..end, stream, 0);
            range.start = end;
        }
    }

    /// Adds two chunks that share a range, one of each stream.
    pub(super) fn push_both(&mut self, range: Range<u64>) {
        self.add(range.clone(), Stream::Out, 0);
        self.add(range, Stream::Err, SAME_RANGE);
    }

    pub(super) fn get(&self, index: usize) -> Option<Chunk> {
        let (first, wanted) = (index - index % MARK_EVERY, *self.entries.get(index)?);
        let mut start = self.marks[first / MARK_EVERY];
        let mut len = u64::from(self.entries[first] >> FLAG_BITS);
        for entry in &self.entries[first + 1..=index] {
            if entry & SAME_RANGE == 0 {
                start += len;
            }
            len = u64::from(entry >> FLAG_BITS);
        }
        let stream = if wanted & ERR == 0 { Stream::Out } else { Stream::Err };
        Some(Chunk { range: start..start + len, stream })
    }

    fn add(&mut self, range: Range<u64>, stream: Stream, flags: u32) {
        if self.entries.len().is_multiple_of(MARK_EVERY) {
            self.marks.push(range.start);
        }
        let stream = match stream {
            Stream::Out => 0,
            Stream::Err => ERR,
        };
        let len = (range.end - range.start) as u32; // at most MOST_BYTES
        self.entries.push(len << FLAG_BITS | flags | stream);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_chunk_is_found_where_it_was_put(
            steps in prop::collection::vec((0u8..3, 1u64..70_000), 0..400)
        ) {
            let (mut chunks, mut want, mut at) = (Chunks::default(), Vec::new(), 0);
            for (kind, len) in steps {
                let range = at..at + len;
                at += len;
                let chunk = |stream| Chunk { range: range.clone(), stream };
                match kind {
                    0 => want.push(chunk(Stream::Out)),
                    1 => want.push(chunk(Stream::Err)),
                    _ => want.extend([chunk(Stream::Out), chunk(Stream::Err)]),
                }
                match kind {
                    0 => chunks.push(range, Stream::Out),
                    1 => chunks.push(range, Stream::Err),
                    _ => chunks.push_both(range),
                }
            }
            prop_assert_eq!(chunks.len(), want.len());
            for (index, chunk) in want.iter().enumerate() {
                prop_assert_eq!(chunks.get(index), Some(chunk.clone()));
            }
            prop_assert_eq!(chunks.get(want.len()), None);
        }
    }

    #[test]
    fn a_range_of_gigabytes_becomes_several_chunks() {
        let mut chunks = Chunks::default();
        chunks.push(0..3 << 30, Stream::Out);
        chunks.push(3 << 30..(3 << 30) + 1, Stream::Err);
        let found: Vec<Chunk> = (0..chunks.len()).filter_map(|at| chunks.get(at)).collect();
        assert_eq!(found.first().unwrap().range.start, 0);
        assert!(found.windows(2).all(|pair| pair[0].range.end == pair[1].range.start));
        let last = Chunk { range: 3 << 30..(3 << 30) + 1, stream: Stream::Err };
        assert_eq!(found.last(), Some(&last));
    }
}
