//! A writer can die at any instant, and another one goes on with its log.
#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

use std::fs::{self, File};
use std::io::Write;
use std::ops::Range;
use std::os::fd::OwnedFd;

use lastbyte_output::log::{
    Dropped, Extent, Horizon, LogFile, Piece, Place, Pool, Progress, Pulled, Quota, RESOLUTION,
    Reader, Stream, Streams, Writer,
};
use lastbyte_sys::Errno;
use proptest::prelude::*;

const STARTED: u64 = 1_000_000;
const RESOLUTION_MS: u64 = RESOLUTION.as_millis() as u64;
/// A quota as small as can be: its middle is dropped soon.
const QUOTA: u64 = Quota::LEAST;

struct Published(Extent);

impl Horizon for Published {
    fn extent(&self) -> Extent {
        self.0.clone()
    }
}

/// One byte that the log has, and when it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Came {
    byte: u8,
    stream: Stream,
    at_ms: u64,
}

/// The instant at which a writer dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Death {
    None,
    /// The stamp is written; its bytes are still in the pipe.
    BeforeBytes,
    /// The bytes are in the file; nobody was told.
    BeforePublishing,
    /// What is dropped was published, and still takes space.
    BeforePunching,
    AfterPunching,
}

const DEATHS: [Death; 4] =
    [Death::BeforeBytes, Death::BeforePublishing, Death::BeforePunching, Death::AfterPunching];

#[derive(Debug, Clone, Copy)]
struct Step {
    stream: Stream,
    count: usize,
    /// How much later than the step before it.
    after_ms: u64,
    death: Death,
}

/// A log, and all that should be in it.
struct Fixture {
    place: Place,
    streams: Streams,
    writer: Writer,
    pipe: (OwnedFd, File),
    now_ms: u64,
    came: Vec<Came>,
    published: Extent,
    /// What of it was punched.
    punched: Dropped,
    /// How many writers have died since without freeing what they dropped.
    unfreed: u64,
    _folder: tempfile::TempDir,
}

impl Fixture {
    fn new(streams: Streams) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::new(folder.path(), 1);
        let quota = Quota::new(QUOTA).unwrap();
        let writer = Writer::new(LogFile::at(place.clone()), streams, quota, STARTED);
        let (read, write) = lastbyte_sys::pipe::pipe().unwrap();
        lastbyte_sys::pipe::set_nonblocking(&read).unwrap();
        let (published, punched) = (Extent::default(), Dropped::default());
        Self {
            place,
            streams,
            writer,
            pipe: (read, write.into()),
            now_ms: STARTED,
            came: Vec::new(),
            published,
            punched,
            unfreed: 0,
            _folder: folder,
        }
    }

    fn step(&mut self, step: Step) {
        self.now_ms += step.after_ms;
        let bytes: Vec<u8> = (self.came.len()..).map(byte_at).take(step.count).collect();
        self.pipe.1.write_all(&bytes).unwrap();
        let before = self.writer.extent().len;
        let pulled = self.writer.pull(&self.pipe.0, step.stream, step.count, self.now_ms);
        assert_eq!(pulled, Pulled::Bytes(step.count));
        if step.death == Death::BeforeBytes {
            // As if they had never left the pipe, and then other bytes came first.
            File::options().write(true).open(self.place.log()).unwrap().set_len(before).unwrap();
            return self.resume();
        }
        let came = |byte| Came { byte, stream: step.stream, at_ms: self.now_ms };
        self.came.extend(bytes.into_iter().map(came));
        if step.death == Death::BeforePublishing {
            self.unfreed += 1;
            return self.resume();
        }
        let extent = self.writer.extent();
        assert_eq!(extent.len, self.came.len() as u64);
        assert!(covers(&extent.dropped, &self.punched), "{extent:?} without {:?}", self.punched);
        self.published = extent;
        if step.death == Death::BeforePunching {
            self.unfreed += 1;
            return self.resume();
        }
        self.writer.give_back(&self.published);
        self.punched = self.published.dropped.clone();
        if self.writer.progress().final_len.is_none() {
            self.unfreed = 0;
        }
        assert!(self.writer.kept() <= self.most_kept(), "{} bytes kept", self.writer.kept());
        if step.death == Death::AfterPunching {
            self.resume();
            assert_eq!(self.writer.extent(), self.published);
        }
    }

    /// Another writer goes on. Nothing saw the last one off: a writer does nothing when it is dropped.
    fn resume(&mut self) {
        let (quota, saved) = (Quota::new(QUOTA).unwrap(), self.saved());
        let place = self.place.clone();
        self.writer = Writer::resume(place, self.streams, quota, STARTED, saved).unwrap();
        let extent = self.writer.extent();
        assert_eq!(extent.len, self.came.len() as u64);
        assert!(covers(&extent.dropped, &self.punched), "{extent:?} without {:?}", self.punched);
        if self.published.dropped == self.punched {
            assert!(covers(&self.published.dropped, &extent.dropped), "{extent:?} drops more");
        }
    }

    /// Late output has a quota of its own. A writer that dies leaves an append more, which stays if it
    /// was the last one before the ending.
    fn most_kept(&self) -> u64 {
        let regions = if self.writer.progress().final_len.is_some() { 2 } else { 1 };
        regions * QUOTA + (1 + self.unfreed) * (16 << 10)
    }

    /// As an owner saves it: before it publishes the extent.
    fn saved(&self) -> Progress {
        Progress { len: self.published.len, ..self.writer.progress() }
    }

    /// Reads everything and compares bytes, streams and times.
    fn check(&self) {
        let extent = self.writer.extent();
        for reader in [self.writer.reader(), self.of_files()] {
            let mut at = 0;
            while at < extent.len {
                at = self.check_piece(&reader, &extent, at);
            }
        }
        let dropped = extent.dropped.bytes();
        assert!(
            extent.len - dropped >= extent.len.min(QUOTA / 4),
            "too much is dropped: {dropped}"
        );
    }

    fn check_piece(&self, reader: &Reader, extent: &Extent, at: u64) -> u64 {
        let (mut chunk, live) = (vec![0; 5000], Published(extent.clone()));
        let count = match reader.read(extent, &live, at, &mut chunk).unwrap() {
            Piece::Dropped(range) => {
                assert!(extent.dropped.ranges().contains(&range), "{range:?} of {extent:?}");
                return range.end;
            }
            Piece::Bytes(count) => count as u64,
            Piece::End => panic!("an end at {at}"),
        };
        let end = at + count;
        let came = &self.came[at as usize..end as usize];
        assert!(came.iter().zip(&chunk).all(|(came, byte)| came.byte == *byte), "bytes at {at}");
        let (_, runs) = reader.read_runs(extent, &live, at, &mut chunk[..count as usize]).unwrap();
        for (offset, came) in (at..end).zip(came) {
            let run = runs.iter().find(|run| run.range.contains(&offset)).unwrap();
            let stream = if self.streams == Streams::One { Stream::Out } else { came.stream };
            assert_eq!(run.stream, stream, "byte {offset}");
        }
        let stamps = reader.stamps(at..end, usize::MAX).unwrap().stamps;
        let ends = stamps.iter().skip(1).map(|stamp| stamp.offset).chain([end]);
        for (stamp, end) in stamps.iter().zip(ends) {
            for came in &self.came[stamp.offset as usize..end as usize] {
                let late = came.at_ms.checked_sub(stamp.at_ms);
                assert!(late.is_some_and(|late| late < RESOLUTION_MS), "{came:?} has {stamp:?}");
            }
        }
        end
    }

    fn of_files(&self) -> Reader {
        Reader::of_files(self.place.clone(), self.streams, STARTED)
    }
}

fn byte_at(offset: usize) -> u8 {
    (offset % 251 + 1) as u8
}

fn covers(wide: &Dropped, narrow: &Dropped) -> bool {
    let within = |range: &Range<u64>| {
        wide.ranges().iter().any(|wide| wide.start <= range.start && range.end <= wide.end)
    };
    narrow.ranges().iter().all(within)
}

fn any_step(longest: usize) -> impl Strategy<Value = Step> {
    let stream = prop_oneof![Just(Stream::Out), Just(Stream::Err)];
    let death = prop_oneof![4 => Just(Death::None), 4 => prop::sample::select(&DEATHS[..])];
    (stream, 1..=longest, prop_oneof![2 => Just(0), 1 => 0u64..300], death)
        .prop_map(|(stream, count, after_ms, death)| Step { stream, count, after_ms, death })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_log_goes_on_wherever_its_writer_dies(
        steps in prop::collection::vec(any_step(40), 1..60),
        streams in prop::sample::select(&[Streams::One, Streams::Split][..]),
    ) {
        let mut fixture = Fixture::new(streams);
        for step in steps {
            fixture.step(step);
            fixture.check();
        }
    }

    /// Bytes and index together are many times the quota, before and after each death.
    #[test]
    fn the_middle_is_dropped_before_and_after_a_writer_dies(
        steps in prop::collection::vec(any_step(16 << 10), 40..160),
        streams in prop::sample::select(&[Streams::One, Streams::Split][..]),
        finish in 0usize..200,
    ) {
        let mut fixture = Fixture::new(streams);
        for (number, step) in steps.into_iter().enumerate() {
            if number == finish {
                fixture.writer.finish();
            }
            fixture.step(step);
        }
        fixture.check();
    }
}

fn step(stream: Stream, count: usize, death: Death) -> Step {
    Step { stream, count, after_ms: 0, death }
}

#[test]
fn a_stamp_whose_bytes_never_came_does_not_hold_for_those_of_another_stream() {
    let both = [Stream::Out, Stream::Err];
    for number in 0..8 {
        let [before, lost, after] = [0, 1, 2].map(|bit| both[number >> bit & 1]);
        let mut fixture = Fixture::new(Streams::Split);
        fixture.step(step(before, 10, Death::None));
        fixture.step(step(lost, 20, Death::BeforeBytes));
        fixture.step(step(after, 30, Death::None));
        fixture.step(step(before, 5, Death::AfterPunching));
        fixture.check();
    }
}

/// With bytes and stamps for several quotas.
#[test]
fn an_index_of_several_blocks_goes_on() {
    let mut fixture = Fixture::new(Streams::Split);
    for number in 0..12_000 {
        let stream = if number % 2 == 0 { Stream::Out } else { Stream::Err };
        let death = if number % 97 == 0 { DEATHS[number / 97 % 4] } else { Death::None };
        fixture.step(Step { stream, count: 25, after_ms: 40, death });
    }
    assert!(fixture.writer.extent().dropped.bytes() > 0);
    fixture.check();
}

#[test]
fn a_log_without_a_file_or_with_an_empty_one_goes_on_from_its_first_byte() {
    for streams in [Streams::One, Streams::Split] {
        let mut fixture = Fixture::new(streams);
        fixture.resume();
        fixture.step(step(Stream::Err, 10, Death::None));
        fixture.check();

        // From a pool, whose file has an empty index of an earlier log.
        let mut fixture = Fixture::new(streams);
        let pool = Pool::new(fixture.place.log().parent().unwrap().to_owned(), 1, 0);
        fixture.writer =
            Writer::new(pool.take().unwrap(), streams, Quota::new(QUOTA).unwrap(), STARTED);
        fs::write(fixture.place.index(), "").unwrap();
        fixture.resume();
        fixture.step(step(Stream::Err, 10, Death::AfterPunching));
        fixture.check();
        assert!(fixture.writer.settle().is_some(), "it is as good as any");
    }
}

#[test]
fn only_late_output_grows_after_the_ending() {
    let mut fixture = Fixture::new(Streams::One);
    (0..40).for_each(|_| fixture.step(step(Stream::Out, 10_000, Death::None)));
    let final_len = fixture.writer.finish();
    let middle = fixture.writer.extent().dropped;
    fixture.resume();
    (0..40).for_each(|_| fixture.step(step(Stream::Out, 10_000, Death::AfterPunching)));
    let dropped = fixture.writer.extent().dropped;
    assert_eq!(dropped.below(final_len), middle);
    assert_eq!((dropped.ranges().len(), fixture.writer.finish()), (2, final_len));
    fixture.check();
}

/// An owner that was killed before it could punch leaves a log larger than its quota.
#[test]
fn what_was_dropped_but_not_freed_is_freed_with_the_next_cut() {
    let mut fixture = Fixture::new(Streams::Split);
    (0..14).for_each(|_| fixture.step(step(Stream::Out, 10_000, Death::BeforePunching)));
    let blocks = || fs::metadata(fixture.place.log()).unwrap();
    let size = |file: fs::Metadata| std::os::unix::fs::MetadataExt::blocks(&file) * 512;
    assert!(size(blocks()) > QUOTA && fixture.writer.extent().dropped.is_empty());
    let place = fixture.place.clone();
    fixture.step(step(Stream::Out, 1, Death::None));
    assert!(!fixture.writer.extent().dropped.is_empty());
    assert!(size(fs::metadata(place.log()).unwrap()) <= QUOTA + 4096);
    fixture.check();
}

/// Ten bytes are in the file. Twenty were read after the disk had failed.
fn failed(streams: Streams, failed: Option<Errno>, final_len: Option<u64>) -> Fixture {
    let mut fixture = Fixture::new(streams);
    fixture.step(step(Stream::Out, 10, Death::None));
    let progress = Progress { len: 30, final_len, failed };
    let quota = Quota::new(QUOTA).unwrap();
    let place = fixture.place.clone();
    fixture.writer = Writer::resume(place, streams, quota, STARTED, progress).unwrap();
    fixture
}

#[test]
fn what_was_in_memory_after_the_disk_failed_is_dropped_and_cursors_keep_their_meaning() {
    for streams in [Streams::One, Streams::Split] {
        for errno in [Some(Errno::NOSPC), None] {
            let mut fixture = failed(streams, errno, None);
            let dropped = Dropped::covering(Some(10..30));
            assert_eq!(fixture.writer.extent(), Extent { len: 30, dropped: dropped.clone() });
            let failed = fixture.writer.failed().unwrap();
            assert_eq!((failed.errno, failed.at), (errno.unwrap_or(Errno::IO), 10));
            fixture.pipe.1.write_all(b"later").unwrap();
            let pulled = fixture.writer.pull(&fixture.pipe.0, Stream::Err, 100, STARTED + 900);
            assert_eq!(pulled, Pulled::Bytes(5));
            let extent = fixture.writer.extent();
            assert_eq!(extent, Extent { len: 35, dropped });
            let (reader, live) = (fixture.writer.reader(), Published(extent.clone()));
            let mut chunk = [0; 50];
            let mut read = |at| reader.read_runs(&extent, &live, at, &mut chunk).unwrap().0;
            assert_eq!([read(0), read(4)], [Piece::Bytes(10), Piece::Bytes(6)]);
            assert_eq!([read(10), read(35)], [Piece::Dropped(10..30), Piece::End]);
            let (piece, runs) = reader.read_runs(&extent, &live, 30, &mut chunk).unwrap();
            assert_eq!((piece, &chunk[..5], runs.len()), (Piece::Bytes(5), &b"later"[..], 1));
            assert_eq!(
                fixture.writer.progress(),
                Progress { len: 35, final_len: None, failed: Some(failed.errno) }
            );
        }
    }
}

#[test]
fn a_file_that_is_shorter_than_the_output_was_is_a_failed_log() {
    let fixture = failed(Streams::One, None, Some(30));
    fs::remove_file(fixture.place.log()).unwrap();
    for (len, final_len) in [(30, None), (0, Some(30))] {
        let progress = Progress { len, final_len, failed: None };
        let (quota, place) = (Quota::new(QUOTA).unwrap(), fixture.place.clone());
        let writer = Writer::resume(place, Streams::One, quota, STARTED, progress).unwrap();
        assert_eq!(writer.extent(), Extent { len: 30, dropped: Dropped::covering(Some(0..30)) });
    }
}

#[test]
fn an_index_without_its_log_is_not_taken_for_that_of_the_next() {
    let mut fixture = Fixture::new(Streams::Split);
    fixture.step(step(Stream::Err, 10, Death::None));
    fs::remove_file(fixture.place.log()).unwrap();
    (fixture.came, fixture.published) = (Vec::new(), Extent::default());
    fixture.resume();
    fixture.step(step(Stream::Out, 10, Death::None));
    fixture.check();
}

#[test]
fn a_clock_that_is_set_back_meanwhile_does_not_make_later_bytes_look_earlier() {
    let mut fixture = Fixture::new(Streams::Split);
    fixture.step(Step { after_ms: 5000, ..step(Stream::Out, 10, Death::AfterPunching) });
    fixture.now_ms -= 3000;
    fixture.step(step(Stream::Err, 10, Death::None));
    let stamps = fixture.of_files().stamps(0..20, 10).unwrap().stamps;
    let times: Vec<_> = stamps.iter().map(|stamp| (stamp.offset, stamp.at_ms)).collect();
    assert_eq!(times, [(0, STARTED + 5000), (10, STARTED + 5000)]);
}
