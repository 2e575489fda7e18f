//! The index of a log: its stamps, in a file beside it.
//!
//! A record is written before its bytes, so after a crash every byte of the log has its record. Of two
//! records for one offset the last holds. Blocks of 4 KiB begin with an absolute record, so that a
//! lookup is a binary search and a block can be freed without making the next ones unreadable.
//!
//! ```text
//! block:  offset u64 | time·2+stream u64 | (Δoffset·2+stream+1 varint, Δtime varint)… | zeros
//! ```

mod block;
#[cfg(test)]
mod fuzz;
mod lookup;

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use lastbyte_sys::file::punch_hole;

use super::Stamp;
use super::quota::BLOCK;
use super::recover::holes;
use block::{LONGEST_RECORD, absolute, after, last_up_to, read_header};

pub(super) use lookup::{made_since, within};

/// The writing side of an index.
#[derive(Debug)]
pub(super) struct IndexWriter {
    file: File,
    /// Bytes in the file so far.
    len: u64,
    last: Option<Stamp>,
    /// The first block that [`IndexWriter::give_back`] has not checked yet.
    first_kept: u64,
    given_back: u64,
}

impl IndexWriter {
    /// Begins an index in an empty file.
    pub(super) fn new(file: File) -> Self {
        Self { file, len: 0, last: None, first_kept: 0, given_back: 0 }
    }

    /// Goes on with the index of a log that has this length, after its last whole record that is not
    /// past it. What follows that one is cut off.
    pub(super) fn resume(file: File, log_len: u64) -> io::Result<Self> {
        let (last, len) = last_up_to(&file, log_len)?.unzip();
        let len = len.unwrap_or(0);
        file.set_len(len)?;
        let holes = holes(&file, 0..len)?;
        let given_back = holes.iter().map(|hole| hole.end - hole.start).sum();
        let first_kept = holes.last().map_or(0, |hole| hole.end / BLOCK);
        Ok(Self { file, len, last, first_kept, given_back })
    }

    /// The newest stamp.
    pub(super) fn last(&self) -> Option<Stamp> {
        self.last
    }

    /// Appends a stamp, neither earlier than the last one nor before it.
    pub(super) fn append(&mut self, stamp: Stamp) -> io::Result<()> {
        let used = (self.len % BLOCK) as usize;
        let (at, record) = match self.last {
            Some(last) if used != 0 && used + LONGEST_RECORD <= BLOCK as usize => {
                (self.len, after(last, stamp))
            }
            _ => (self.len.next_multiple_of(BLOCK), absolute(stamp)),
        };
        self.file.write_all_at(&record, at)?;
        self.len = at + record.len() as u64;
        self.last = Some(stamp);
        Ok(())
    }

    /// All stamps that are there.
    pub(super) fn all(&self) -> io::Result<Vec<Stamp>> {
        within(&self.file, &(0..u64::MAX), usize::MAX).map(|found| found.stamps)
    }

    /// The file, for another index.
    pub(super) fn into_emptied_file(self) -> io::Result<File> {
        self.file.set_len(0)?;
        Ok(self.file)
    }

    /// How many bytes the index takes on disk.
    pub(super) fn kept(&self) -> u64 {
        self.len - self.given_back
    }

    /// Frees the blocks whose stamps are only of bytes in `gone`.
    pub(super) fn give_back(&mut self, gone: &Range<u64>) -> io::Result<()> {
        let mut hole: Option<Range<u64>> = None;
        // The block after a freed one must begin inside the range or at its end.
        while (self.first_kept + 1) * BLOCK < self.len {
            let starts = read_header(&self.file, self.first_kept)?;
            let ends = read_header(&self.file, self.first_kept + 1)?;
            if ends.is_some_and(|ends| ends.offset > gone.end) {
                break;
            }
            // A block without a first stamp was given back before.
            if ends.and(starts).is_some_and(|starts| starts.offset >= gone.start) {
                let at = self.first_kept * BLOCK;
                hole = Some(hole.map_or(at, |hole| hole.start)..at + BLOCK);
            }
            self.first_kept += 1;
        }
        if let Some(hole) = hole {
            punch_hole(&self.file, hole.start, hole.end - hole.start)?;
            self.given_back += hole.end - hole.start;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Stream;
    use proptest::prelude::*;

    /// Appends stamps these many bytes apart, with alternating streams and increasing times.
    fn written(steps: &[u64]) -> (IndexWriter, Vec<Stamp>) {
        let mut writer = IndexWriter::new(tempfile::tempfile().expect("file"));
        let (mut offset, mut stamps) = (0, Vec::new());
        for (number, step) in (0..).zip(steps) {
            let stamp = Stamp { offset, stream: block::decode_stream(number), at_ms: 5 + number };
            writer.append(stamp).expect("write");
            stamps.push(stamp);
            offset += step;
        }
        (writer, stamps)
    }

    /// What `within` should find: the last stamp up to the start, and all after it.
    fn expected(all: &[Stamp], range: &Range<u64>) -> Vec<Stamp> {
        let first = all.partition_point(|stamp| stamp.offset <= range.start).saturating_sub(1);
        all[first..].iter().filter(|stamp| stamp.offset < range.end).copied().collect()
    }

    /// A lookup reads whole blocks, so its result ends with what is expected.
    fn found(writer: &IndexWriter, range: &Range<u64>) -> Vec<Stamp> {
        let found = within(&writer.file, range, usize::MAX).expect("read");
        assert_eq!(found.until, range.end);
        expected(&found.stamps, range)
    }

    proptest! {
        #[test]
        fn stamps_read_back_as_they_were_written(steps in prop::collection::vec(1u64..1 << 20, 1..3000)) {
            let (writer, all) = written(&steps);
            let total: u64 = steps.iter().sum();
            for range in [0..total, total / 3..total / 2, total - 1..total] {
                prop_assert_eq!(found(&writer, &range), expected(&all, &range));
            }
            for (number, stamp) in all.iter().enumerate().step_by(97) {
                prop_assert_eq!(made_since(&writer.file, stamp.at_ms).expect("read"), Some(all[number]));
            }
            prop_assert_eq!(made_since(&writer.file, 0).expect("read"), Some(all[0]));
            prop_assert_eq!(made_since(&writer.file, u64::MAX).expect("read"), None);
        }
    }

    #[test]
    fn a_long_lookup_in_parts_finds_the_same() {
        let (writer, all) = written(&[3; 10_000]);
        let (mut at, mut parts) = (0, Vec::new());
        while at < 30_000 {
            let found = within(&writer.file, &(at..30_000), 100).expect("read");
            assert!(found.until > at && found.stamps.len() < 5000, "{found:?}");
            parts.extend(expected(&found.stamps, &(at..found.until)));
            at = found.until;
        }
        assert_eq!(parts, all);
    }

    #[test]
    fn blocks_of_dropped_bytes_are_given_back_and_the_rest_stays_readable() {
        let (mut writer, all) = written(&[1; 100_000]);
        let before = writer.kept();
        writer.give_back(&(10_000..90_000)).expect("punch");
        assert!(writer.kept() < before / 3, "{} of {before} kept", writer.kept());
        assert_eq!(found(&writer, &(0..10_000)), all[..10_000]);
        assert_eq!(found(&writer, &(90_000..100_000)), all[90_000..]);
        let over_all = found(&writer, &(0..100_000));
        assert_eq!((over_all[0], over_all.last()), (all[0], all.last()));
        assert_eq!(made_since(&writer.file, all[9_000].at_ms).expect("read"), Some(all[9_000]));
        assert_eq!(made_since(&writer.file, all[95_000].at_ms).expect("read"), Some(all[95_000]));
        let behind = made_since(&writer.file, all[50_000].at_ms).expect("read").expect("one");
        assert!((10_000..=90_000).contains(&behind.offset), "{behind:?}");
    }

    #[test]
    fn an_index_whose_first_blocks_are_gone_is_readable() {
        let (mut writer, all) = written(&[1; 10_000]);
        writer.give_back(&(0..8_000)).expect("punch");
        assert_eq!(found(&writer, &(8_000..10_000)), all[8_000..]);
        let first = made_since(&writer.file, 0).expect("read").expect("one");
        assert!((1..=8_000).contains(&first.offset), "{first:?}");
    }

    #[test]
    fn an_index_that_was_cut_anywhere_goes_on_after_its_last_whole_record() {
        let steps = [1, 200, 40_000, 1].repeat(200);
        let (writer, all) = written(&steps);
        for cut in (0..writer.len).rev() {
            let file = writer.file.try_clone().expect("a descriptor");
            file.set_len(cut).expect("shorter");
            let mut resumed = IndexWriter::resume(file, u64::MAX).expect("readable");
            assert!(resumed.len <= cut && cut < resumed.len + BLOCK, "{} of {cut}", resumed.len);
            let whole = resumed.all().expect("readable");
            assert_eq!((&whole[..], resumed.last()), (&all[..whole.len()], whole.last().copied()));
            if cut % 50 == 0 && whole.len() < all.len() {
                let rest = &all[whole.len()..];
                rest.iter().for_each(|stamp| resumed.append(*stamp).expect("room"));
                assert_eq!(resumed.all().expect("readable"), all, "cut at {cut}");
            }
        }
    }

    #[test]
    fn stamps_past_the_end_of_the_log_are_cut_off() {
        let (writer, all) = written(&[10; 1500]);
        let file = writer.file.try_clone().expect("a descriptor");
        for len in [14_990, 8_005, 8_000, 7_999, 0] {
            let file = file.try_clone().expect("a descriptor");
            let resumed = IndexWriter::resume(file, len).expect("readable");
            assert_eq!(resumed.all().expect("readable"), all[..=len as usize / 10]);
        }
    }

    #[test]
    fn a_resumed_index_gives_back_what_is_dropped_after_what_was() {
        let (mut writer, all) = written(&[1; 100_000]);
        writer.give_back(&(10_000..50_000)).expect("punch");
        let file = writer.file.try_clone().expect("a descriptor");
        let mut resumed = IndexWriter::resume(file, 100_000).expect("readable");
        assert_eq!(
            (resumed.kept(), resumed.len, resumed.last),
            (writer.kept(), writer.len, writer.last)
        );
        resumed.give_back(&(10_000..90_000)).expect("punch");
        let (mut at_once, _) = written(&[1; 100_000]);
        at_once.give_back(&(10_000..90_000)).expect("punch");
        assert_eq!(resumed.kept(), at_once.kept());
        assert_eq!(found(&resumed, &(90_000..100_000)), all[90_000..]);
    }

    #[test]
    fn of_two_records_for_one_offset_the_last_holds() {
        let mut writer = IndexWriter::new(tempfile::tempfile().expect("file"));
        let stamps = [Stream::Out, Stream::Err, Stream::Out].map(|stream| {
            let stamp = Stamp { offset: 0, stream, at_ms: 7 };
            writer.append(stamp).expect("write");
            stamp
        });
        assert_eq!(found(&writer, &(0..3)), stamps[2..]);
    }
}
