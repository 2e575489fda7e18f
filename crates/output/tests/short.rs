//! A log that is kept elsewhere while it is short: nobody can tell but by looking for its file.
#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use lastbyte_output::log::{
    Extent, Horizon, Keep, Piece, Place, Pulled, Quota, RESOLUTION, Reader, ShortLog, Stream,
    Streams, Writer,
};
use proptest::prelude::*;

const STARTED: u64 = 1_000_000;
const RESOLUTION_MS: u64 = RESOLUTION.as_millis() as u64;

/// What is kept, and whether there is room for more.
#[derive(Debug, Default)]
struct Shelf {
    kept: Mutex<ShortLog>,
    full: Mutex<bool>,
}

impl Keep for Shelf {
    fn keep(&self, more: &ShortLog) -> bool {
        let room = !*self.full.lock().unwrap();
        if room {
            self.kept.lock().unwrap().append(more);
        }
        room
    }

    fn moved(&self) {
        *self.kept.lock().unwrap() = ShortLog::default();
    }
}

struct Fixed(Extent);

impl Horizon for Fixed {
    fn extent(&self) -> Extent {
        self.0.clone()
    }
}

/// A byte with the stream it came on and the time.
type Byte = (u8, Stream, u64);

struct Fixture {
    writer: Writer,
    shelf: Arc<Shelf>,
    place: Place,
    streams: Streams,
    pipe: (OwnedFd, File),
    came: Vec<Byte>,
    now_ms: u64,
    folder: tempfile::TempDir,
}

impl Fixture {
    fn new(streams: Streams) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (place, shelf) = (Place::new(folder.path(), "x"), Arc::new(Shelf::default()));
        let writer = Writer::new(place.clone(), streams, Quota::DEFAULT, STARTED)
            .kept_by(Some(Arc::clone(&shelf) as _));
        let (read, write) = lastbyte_sys::pipe::pipe().unwrap();
        lastbyte_sys::pipe::set_nonblocking(&read).unwrap();
        let (pipe, came, now_ms) = ((read, write.into()), Vec::new(), STARTED);
        Self { writer, shelf, place, streams, pipe, came, now_ms, folder }
    }

    /// So many bytes come now, no two neighbours alike.
    fn append(&mut self, stream: Stream, count: usize) {
        let next = self.came.len();
        let bytes: Vec<u8> = (next..next + count).map(|number| (number % 251) as u8).collect();
        self.pipe.1.write_all(&bytes).unwrap();
        let mut left = count;
        while left > 0 {
            match self.writer.pull(&self.pipe.0, stream, left + 1, self.now_ms) {
                Pulled::Bytes(pulled) => left -= pulled,
                other => panic!("the bytes are there: {other:?}"),
            }
        }
        self.came.extend(bytes.into_iter().map(|byte| (byte, stream, self.now_ms)));
    }

    fn files(&self) -> usize {
        std::fs::read_dir(self.folder.path()).unwrap().count()
    }

    fn check(&self, reader: &Reader, extent: &Extent) {
        assert_eq!(extent.len, self.came.len() as u64);
        let live = Fixed(extent.clone());
        let (mut at, mut into) = (0, [0; 700]);
        while at < extent.len {
            let (piece, stamps) = reader.read_stamps(extent, &live, at, &mut into).unwrap();
            let Piece::Bytes(count) = piece else { panic!("{piece:?} at {at}") };
            for (number, byte) in (at..).zip(&into[..count]) {
                let stamp = stamps.iter().rfind(|stamp| stamp.offset <= number).unwrap();
                let (want, stream, at_ms) = self.came[number as usize];
                assert_eq!((*byte, stamp.stream), (want, stream), "{number}");
                assert!((stamp.at_ms..stamp.at_ms + RESOLUTION_MS).contains(&at_ms), "{number}");
            }
            at += count as u64;
        }
    }

    /// What somebody finds who knows only what is kept, and the files.
    fn check_what_is_left(&self) {
        let kept = self.shelf.kept.lock().unwrap().clone();
        let recovered = self.place.recover_lost(kept).unwrap();
        let (place, streams) = (self.place.clone(), self.streams);
        let reader = match recovered.short {
            Some(short) => Reader::of_short(place, streams, STARTED, short),
            None => Reader::of_files(place, streams, STARTED),
        };
        self.check(&reader, &recovered.extent);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn it_reads_alike_before_and_after_it_gets_a_file(
        split in any::<bool>(),
        appends in prop::collection::vec((any::<bool>(), 1usize..1500, 0u64..300), 1..24),
        full_at in 0usize..40,
    ) {
        let mut fixture = Fixture::new(if split { Streams::Split } else { Streams::One });
        let reader = fixture.writer.reader();
        for (number, (err, count, ms)) in appends.into_iter().enumerate() {
            fixture.now_ms += ms;
            *fixture.shelf.full.lock().unwrap() = number >= full_at;
            fixture.append(if split && err { Stream::Err } else { Stream::Out }, count);
            let had_a_file = fixture.files() > 0;
            fixture.check(&reader, &fixture.writer.extent());
            fixture.check(&fixture.writer.reader(), &fixture.writer.extent());
            fixture.check_what_is_left();
            prop_assert_eq!(fixture.files() > 0, had_a_file);
            prop_assert_eq!(fixture.writer.kept() >= fixture.writer.extent().len, true);
        }
    }
}

#[test]
fn the_byte_that_is_too_many_makes_a_file_of_all() {
    let mut fixture = Fixture::new(Streams::One);
    fixture.append(Stream::Out, 4095);
    fixture.append(Stream::Out, 1);
    assert_eq!((fixture.files(), fixture.shelf.kept.lock().unwrap().len()), (0, 4096));
    fixture.append(Stream::Out, 1);
    assert_eq!((fixture.files(), fixture.shelf.kept.lock().unwrap().len()), (1, 0));
    assert_eq!(std::fs::metadata(fixture.place.log()).unwrap().len(), 4097);
    fixture.check_what_is_left();
}

#[test]
fn so_does_the_piece_that_is_too_many() {
    let mut fixture = Fixture::new(Streams::One);
    (0..16).for_each(|_| fixture.append(Stream::Out, 1));
    assert_eq!(fixture.files(), 0);
    fixture.append(Stream::Out, 1);
    assert_eq!(fixture.files(), 1);
    fixture.check_what_is_left();
}

/// Whoever holds the output open for long does not hold the keeper.
#[test]
fn late_output_lets_the_keeper_go_and_gets_a_file() {
    let mut fixture = Fixture::new(Streams::Split);
    fixture.append(Stream::Out, 10);
    fixture.append(Stream::Err, 10);
    assert_eq!(fixture.writer.finish(), 20);
    assert_eq!(Arc::strong_count(&fixture.shelf), 1);
    assert_eq!(fixture.files(), 0, "nothing came yet");
    fixture.check_what_is_left();
    fixture.append(Stream::Out, 1);
    let (reader, extent) = (fixture.writer.reader(), fixture.writer.extent());
    fixture.check(&reader, &extent);
    // Nobody told the keeper; the file has more and counts.
    fixture.check_what_is_left();
}

#[test]
fn a_file_that_was_just_being_made_does_not_count() {
    let mut fixture = Fixture::new(Streams::Split);
    fixture.append(Stream::Out, 100);
    fixture.append(Stream::Err, 100);
    for len in [0, 99, 200] {
        File::create(fixture.place.log()).unwrap().set_len(len).unwrap();
        fixture.check_what_is_left();
    }
}

/// The disk takes nothing at all: what was kept stays, and the newest bytes are in memory.
#[test]
fn a_disk_that_fails_costs_none_of_the_bytes_before() {
    for streams in [Streams::One, Streams::Split] {
        let mut fixture = Fixture::new(streams);
        fixture.append(Stream::Out, 50);
        std::fs::remove_dir(fixture.folder.path()).unwrap();
        *fixture.shelf.full.lock().unwrap() = true;
        fixture.append(Stream::Out, 70);
        assert_eq!(fixture.writer.failed().map(|failed| failed.at), Some(50));
        let (reader, extent) = (fixture.writer.reader(), fixture.writer.extent());
        fixture.check(&reader, &extent);
        let kept = fixture.shelf.kept.lock().unwrap().clone();
        let ended = fixture.writer.extent();
        let recovered = fixture.place.recover(&ended, kept).unwrap();
        assert_eq!(recovered.extent.dropped.ranges(), std::slice::from_ref(&(50..120)));
        assert_eq!((recovered.extent.len, recovered.disk_bytes), (120, 50));
        std::fs::create_dir(fixture.folder.path()).unwrap();
    }
}

/// Readers look while the log gets its file.
#[test]
fn nobody_misses_a_byte_while_it_is_moved() {
    for _ in 0..200 {
        let mut fixture = Fixture::new(Streams::Split);
        fixture.append(Stream::Out, 4000);
        fixture.append(Stream::Err, 96);
        let (reader, extent) = (fixture.writer.reader(), fixture.writer.extent());
        let before = fixture.came.clone();
        std::thread::scope(|scope| {
            let looker = scope.spawn(|| {
                let (live, mut into) = (Fixed(extent.clone()), [0; 4096]);
                for _ in 0..50 {
                    let again = reader.again();
                    let (piece, runs) = again.read_runs(&extent, &live, 0, &mut into).unwrap();
                    assert_eq!((piece, runs.len()), (Piece::Bytes(4096), 2));
                    assert!(into.iter().zip(&before).all(|(byte, (want, ..))| byte == want));
                }
            });
            fixture.append(Stream::Out, 3000);
            looker.join().unwrap();
        });
    }
}
