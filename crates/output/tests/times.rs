//! Every byte has the time at which it arrived, within the resolution.
#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

use std::cell::RefCell;
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::Path;

use lastbyte_output::log::{
    Extent, Horizon, LogFile, Piece, Place, Pulled, Quota, RESOLUTION, Reader, Stamp, Stream,
    Streams, Writer,
};
use proptest::prelude::*;

const STARTED: u64 = 1_000_000;
const RESOLUTION_MS: u64 = RESOLUTION.as_millis() as u64;

/// The published extent, as from an owner.
struct Published(RefCell<Extent>);

impl Horizon for Published {
    fn extent(&self) -> Extent {
        self.0.borrow().clone()
    }
}

/// The stream and time of a byte.
#[derive(Debug, Clone, Copy)]
struct Came {
    stream: Stream,
    at_ms: u64,
    /// The latest time that the clock has shown so far.
    high_ms: u64,
}

/// A log, and the expected facts about its bytes.
struct Fixture {
    writer: Writer,
    published: Published,
    pipe: (OwnedFd, File),
    now_ms: u64,
    came: Vec<Came>,
    place: Place,
    _folder: tempfile::TempDir,
}

impl Fixture {
    fn new(streams: Streams, quota: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self::at(Place::new(folder.path(), 1), streams, quota, folder)
    }

    fn at(place: Place, streams: Streams, quota: u64, folder: tempfile::TempDir) -> Self {
        let writer =
            Writer::new(LogFile::at(place.clone()), streams, Quota::new(quota).unwrap(), STARTED);
        let (read, write) = lastbyte_sys::pipe::pipe().unwrap();
        lastbyte_sys::pipe::set_nonblocking(&read).unwrap();
        Self {
            writer,
            published: Published(RefCell::default()),
            pipe: (read, write.into()),
            now_ms: STARTED,
            came: Vec::new(),
            place,
            _folder: folder,
        }
    }

    /// Appends `count` bytes of a stream now.
    fn append(&mut self, stream: Stream, count: usize) {
        self.pipe.1.write_all(&vec![b'x'; count]).unwrap();
        let mut left = count;
        while left > 0 {
            match self.writer.pull(&self.pipe.0, stream, left, self.now_ms) {
                Pulled::Bytes(pulled) => left -= pulled,
                other => panic!("the bytes are there: {other:?}"),
            }
        }
        let high_ms = self.came.last().map_or(STARTED, |last| last.high_ms).max(self.now_ms);
        self.came.extend(vec![Came { stream, at_ms: self.now_ms, high_ms }; count]);
        self.published.0.replace(self.writer.extent());
        self.writer.give_back(&self.published.extent());
    }

    /// For each of `steps`, advances the clock by the resolution and appends `count` bytes.
    fn trickle(&mut self, steps: usize, count: usize) {
        for _ in 0..steps {
            self.now_ms += RESOLUTION_MS;
            self.append(Stream::Out, count);
        }
    }

    /// A stamp for each byte that can be read, read in chunks of this size.
    fn read(&self, reader: &Reader, chunk: usize) -> Vec<Stamp> {
        let extent = self.published.extent();
        let (mut at, mut into, mut bytes) = (0, vec![0; chunk], Vec::new());
        loop {
            let (piece, stamps) =
                reader.read_stamps(&extent, &self.published, at, &mut into).unwrap();
            match piece {
                Piece::Bytes(count) => {
                    let end = at + count as u64;
                    assert_eq!(stamps.first().map(|first| first.offset), Some(at));
                    assert!(stamps.len() <= 256, "{} of them in one read", stamps.len());
                    bytes.extend(each(&stamps, end));
                    at = end;
                }
                Piece::Dropped(gone) => at = gone.end,
                Piece::End => return bytes,
            }
        }
    }

    fn check_all(&self, reader: &Reader, chunk: usize) {
        let bytes = self.read(reader, chunk);
        let extent = self.published.extent();
        assert_eq!(bytes.len() as u64, extent.len - extent.dropped.bytes());
        bytes.iter().for_each(|stamp| self.check(*stamp));
        let mut in_parts = self.in_parts(reader, 7);
        let is_kept = |at: u64| bytes.binary_search_by_key(&at, |kept| kept.offset).is_ok();
        in_parts.retain(|stamp| is_kept(stamp.offset));
        assert!(in_parts == bytes, "what is kept is told alike in parts of a few stamps");
    }

    fn check(&self, stamp: Stamp) {
        let came = self.came[stamp.offset as usize];
        assert_eq!(stamp.stream, came.stream, "{stamp:?}");
        assert!(stamp.at_ms <= came.high_ms, "{stamp:?} is too late for {came:?}");
        assert!(came.at_ms < stamp.at_ms + RESOLUTION_MS, "{stamp:?} is too early for {came:?}");
    }

    /// A stamp for each byte of the log, read `most` at a time.
    fn in_parts(&self, reader: &Reader, most: usize) -> Vec<Stamp> {
        let (mut at, end, mut bytes) = (0, self.published.extent().len, Vec::new());
        while at < end {
            let stamped = reader.stamps(at..end, most).unwrap();
            assert!(stamped.until > at && stamped.stamps.len() <= most, "{stamped:?} from {at}");
            bytes.extend(each(&stamped.stamps, stamped.until));
            at = stamped.until;
        }
        bytes
    }

    /// No byte of this time or later is before the cursor for it.
    fn check_since(&self, reader: &Reader, at_ms: u64) {
        let cursor = reader.since(&self.published.extent(), at_ms).unwrap();
        let first = self.came.iter().position(|came| came.at_ms >= at_ms);
        let first = first.unwrap_or(self.came.len()) as u64;
        assert!(cursor <= first, "{cursor} is behind {first}, which came since {at_ms}");
    }

    fn has_index(&self) -> bool {
        self.place.index().exists()
    }
}

/// A stamp for each byte up to `end`.
fn each(stamps: &[Stamp], end: u64) -> impl Iterator<Item = Stamp> {
    let ends = stamps.iter().skip(1).map(|stamp| stamp.offset).chain([end]);
    let of_bytes = |(stamp, end): (&Stamp, u64)| {
        let stamp = *stamp;
        (stamp.offset..end).map(move |offset| Stamp { offset, ..stamp })
    };
    stamps.iter().zip(ends).flat_map(of_bytes)
}

/// Steps: bytes of a stream, after the clock moved forward or back.
fn steps() -> impl Strategy<Value = Vec<(bool, usize, i64)>> {
    let clock =
        prop_oneof![4 => 0i64..60, 4 => 60i64..300, 1 => 1000i64..100_000, 1 => -5000i64..0];
    prop::collection::vec((any::<bool>(), 1usize..6000, clock), 1..80)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn every_byte_has_its_time_and_stream(
        steps in steps(),
        split in any::<bool>(),
        quota in prop_oneof![Just(Quota::LEAST), Just(1 << 20)],
        chunk in 1usize..10_000,
    ) {
        let streams = if split { Streams::Split } else { Streams::One };
        let mut fixture = Fixture::new(streams, quota);
        for (out, count, step) in steps {
            fixture.now_ms = fixture.now_ms.saturating_add_signed(step);
            let stream = if out || !split { Stream::Out } else { Stream::Err };
            fixture.append(stream, count);
        }
        for reader in [
            fixture.writer.reader(),
            // As after a restart.
            Reader::of_files(fixture.place.clone(), streams, STARTED),
        ] {
            fixture.check_all(&reader, chunk);
            for came in fixture.came.iter().step_by(fixture.came.len().div_ceil(20)) {
                for at_ms in [came.at_ms - 1, came.at_ms, came.at_ms + RESOLUTION_MS] {
                    fixture.check_since(&reader, at_ms);
                }
            }
        }
    }
}

#[test]
fn bytes_within_the_resolution_of_the_start_need_no_index() {
    let mut fixture = Fixture::new(Streams::One, 1 << 20);
    fixture.now_ms += RESOLUTION_MS - 1;
    fixture.append(Stream::Out, 10);
    assert!(!fixture.has_index());
    fixture.check_all(&fixture.writer.reader(), 100);
    fixture.now_ms += 1;
    fixture.append(Stream::Out, 10);
    assert!(fixture.has_index());
    fixture.check_all(&fixture.writer.reader(), 100);
}

#[test]
fn a_reader_created_before_the_first_stamp_finds_it() {
    let mut fixture = Fixture::new(Streams::One, 1 << 20);
    let reader = fixture.writer.reader();
    fixture.append(Stream::Out, 10);
    fixture.check_all(&reader, 100);
    fixture.trickle(3, 10);
    fixture.check_all(&reader, 100);
}

#[test]
fn bytes_since_a_time_start_less_than_the_resolution_before_it() {
    let mut fixture = Fixture::new(Streams::One, 1 << 20);
    fixture.append(Stream::Out, 10);
    fixture.trickle(10_000, 3);
    let (reader, extent) = (fixture.writer.reader(), fixture.published.extent());
    let since = |at_ms| reader.since(&extent, at_ms).unwrap();
    assert_eq!((since(0), since(STARTED)), (0, 0));
    assert_eq!(since(STARTED + RESOLUTION_MS), 10);
    assert_eq!(since(STARTED + 500 * RESOLUTION_MS), 10 + 499 * 3);
    assert_eq!(since(STARTED + 500 * RESOLUTION_MS - 1), 10 + 498 * 3);
    assert_eq!(since(fixture.now_ms + RESOLUTION_MS - 1), extent.len - 3);
    assert_eq!(since(fixture.now_ms + RESOLUTION_MS), extent.len, "nothing can be that new");
    assert_eq!(since(u64::MAX), extent.len);
}

/// The head keeps its times, the tail too, and the index stays within the quota.
#[test]
fn the_times_of_kept_bytes_are_kept_within_the_quota() {
    let mut fixture = Fixture::new(Streams::One, Quota::LEAST);
    // Stamps take more space here than their bytes.
    for _ in 0..50_000 {
        fixture.trickle(1, 2);
        assert!(fixture.writer.kept() <= Quota::LEAST + Quota::LEAST / 8);
    }
    let extent = fixture.published.extent();
    assert!(!extent.dropped.is_empty());
    let reader = fixture.writer.reader();
    fixture.check_all(&reader, 1000);
    let gone = extent.dropped.ranges()[0].clone();
    let of_gone = fixture.came[(gone.start + gone.end) as usize / 2];
    let cursor = reader.since(&extent, of_gone.at_ms).unwrap();
    assert_eq!(cursor, gone.start, "what is gone may have come since");
    fixture.check_since(&reader, of_gone.at_ms);
}

/// Bytes from before the first stamp of the index, all of whose blocks were dropped.
#[test]
fn a_head_without_stamps_has_the_time_of_the_start() {
    let mut fixture = Fixture::new(Streams::One, Quota::LEAST);
    (0..20).for_each(|_| fixture.append(Stream::Out, 10_000));
    fixture.trickle(30_000, 5);
    fixture.check_all(&fixture.writer.reader(), 1000);
}

#[test]
fn times_that_cannot_be_written_are_still_known_and_cost_no_byte() {
    let mut fixture = Fixture::new(Streams::One, 1 << 20);
    fs::create_dir(fixture.place.index()).unwrap();
    fixture.append(Stream::Out, 10);
    fixture.trickle(5, 10);
    assert_eq!((fixture.writer.failed(), fixture.writer.extent().len), (None, 60));
    let reader = fixture.writer.reader();
    fs::remove_dir(fixture.place.index()).unwrap();
    fixture.trickle(5, 10);
    assert!(fixture.has_index(), "the disk takes them again");
    fixture.check_all(&reader, 7);
    for step in 0..11 {
        fixture.check_since(&reader, STARTED + step * RESOLUTION_MS);
    }
}

#[test]
fn a_log_in_memory_has_times_and_streams() {
    for streams in [Streams::One, Streams::Split] {
        let place = Place::new(Path::new("/no/such/folder"), 1);
        let folder = tempfile::tempdir().unwrap();
        let mut fixture = Fixture::at(place, streams, Quota::LEAST, folder);
        for number in 0..50 {
            fixture.now_ms += 40;
            let is_err = streams == Streams::Split && number % 3 == 0;
            fixture.append(if is_err { Stream::Err } else { Stream::Out }, 10_000);
        }
        assert!(fixture.writer.failed().is_some());
        let reader = fixture.writer.reader();
        fixture.check_all(&reader, 999);
        fixture.check_since(&reader, fixture.now_ms - 500);
    }
}
