//! A source with short reads, so that chunk borders fall anywhere, and generators for its bytes.

use std::{cell::Cell, io, ops::Range};

use lastbyte_output::views::{Read, Source};
use proptest::prelude::*;

/// Bytes, their dropped ranges, and the length of each read.
#[derive(Debug, Clone)]
pub(crate) struct Chopped {
    pub(crate) bytes: Vec<u8>,
    pub(crate) dropped: Vec<Range<u64>>,
    sizes: Vec<usize>,
    turn: Cell<usize>,
}

impl Source for Chopped {
    fn end(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn dropped(&self) -> &[Range<u64>] {
        &self.dropped
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<Read> {
        self.turn.set(self.turn.get() + 1);
        let size = into.len().min(self.sizes[self.turn.get() % self.sizes.len()]);
        let next = self.dropped.iter().find(|gone| gone.end > at);
        if let Some(gone) = next.filter(|gone| gone.start <= at) {
            return Ok(Read::Dropped(gone.clone()));
        }
        let until = next.map_or(self.end(), |gone| gone.start);
        let available = &self.bytes[at.min(until) as usize..until as usize];
        let count = available.len().min(size);
        into[..count].copy_from_slice(&available[..count]);
        Ok(Read::Bytes(count))
    }
}

impl Chopped {
    /// All bytes in one read, nothing dropped.
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, dropped: Vec::new(), sizes: vec![usize::MAX], turn: Cell::new(0) }
    }

    /// The same, read in chunks of these sizes.
    pub(crate) fn in_chunks(self, sizes: Vec<usize>) -> Self {
        Self { sizes, ..self }
    }

    /// The kept parts and their offsets.
    pub(crate) fn kept(&self) -> Vec<(u64, &[u8])> {
        let starts = [0].into_iter().chain(self.dropped.iter().map(|gone| gone.end));
        let ends = self.dropped.iter().map(|gone| gone.start).chain([self.end()]);
        starts
            .zip(ends)
            .filter(|(start, end)| start < end)
            .map(|(start, end)| (start, &self.bytes[start as usize..end as usize]))
            .collect()
    }
}

/// `bytes` without holes, in chunks of any size.
pub(crate) fn whole(bytes: impl Strategy<Value = Vec<u8>>) -> impl Strategy<Value = Chopped> {
    let sizes = prop_oneof![
        prop::collection::vec(1..8_usize, 1..8),
        prop::collection::vec(1..70_000_usize, 1..4),
    ];
    (bytes, sizes).prop_map(|(bytes, sizes)| Chopped { sizes, ..Chopped::new(bytes) })
}

/// `bytes` with up to three dropped ranges, in chunks of any size.
pub(crate) fn with_holes(bytes: impl Strategy<Value = Vec<u8>>) -> impl Strategy<Value = Chopped> {
    let cuts = prop::collection::vec(any::<prop::sample::Index>(), 0..6);
    (whole(bytes), cuts).prop_map(|(source, cuts)| {
        let mut cuts: Vec<u64> =
            cuts.iter().map(|cut| cut.index(source.bytes.len() + 1) as u64).collect();
        cuts.sort_unstable();
        cuts.dedup();
        let dropped = cuts.chunks_exact(2).map(|pair| pair[0]..pair[1]).collect();
        Chopped { dropped, ..source }
    })
}

/// Typical output: short and long lines, characters of several bytes, invalid bytes.
pub(crate) fn output() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        4 => "[a-c ]{0,6}".prop_map(String::into_bytes),
        4 => Just(b"\n".to_vec()),
        1 => Just(b"\r\n".to_vec()),
        2 => Just("é€😀".as_bytes().to_vec()),
        1 => any::<u8>().prop_map(|byte| vec![byte]),
        1 => (1..400_usize).prop_map(|len| vec![b'x'; len]),
    ];
    prop::collection::vec(part, 0..60).prop_map(|parts| parts.concat())
}
