//! Files that several logs use in turn, which readers cannot notice.
#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

use std::fs::{self, File};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use lastbyte_output::log::{
    Extent, Horizon, Piece, Place, Pool, Pulled, Quota, RESOLUTION, Reader, Stamp, Stream, Streams,
    Writer,
};
use proptest::prelude::*;

const STARTED: u64 = 1_000_000;
const RESOLUTION_MS: u64 = RESOLUTION.as_millis() as u64;

struct Fixed(Extent);

impl Horizon for Fixed {
    fn extent(&self) -> Extent {
        self.0.clone()
    }
}

/// A byte with its stream and time.
type Byte = (u8, Stream, u64);

/// A log that is being written, and its expected contents.
struct Log {
    writer: Writer,
    streams: Streams,
    pipe: (OwnedFd, File),
    came: Vec<Byte>,
    now_ms: u64,
}

impl Log {
    fn new(pool: &Pool, streams: Streams) -> Self {
        let writer = Writer::new(pool.take().unwrap(), streams, Quota::DEFAULT, STARTED);
        let (read, write) = lastbyte_sys::pipe::pipe().unwrap();
        lastbyte_sys::pipe::set_nonblocking(&read).unwrap();
        Self { writer, streams, pipe: (read, write.into()), came: Vec::new(), now_ms: STARTED }
    }

    /// Appends these bytes now.
    fn say(&mut self, stream: Stream, bytes: &[u8]) {
        self.pipe.1.write_all(bytes).unwrap();
        let mut left = bytes.len();
        while left > 0 {
            match self.writer.pull(&self.pipe.0, stream, left + 1, self.now_ms) {
                Pulled::Bytes(pulled) => left -= pulled,
                other => panic!("the bytes are there: {other:?}"),
            }
        }
        self.came.extend(bytes.iter().map(|byte| (*byte, stream, self.now_ms)));
    }

    /// Appends `count` bytes now, no two neighbours equal.
    fn append(&mut self, stream: Stream, count: usize) {
        let next = self.came.len();
        let bytes: Vec<u8> = (next..next + count).map(|number| (number % 251) as u8).collect();
        self.say(stream, &bytes);
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
}

fn pool(folder: &Path) -> Pool {
    Pool::new(folder.to_owned(), 16, 0)
}

/// The file that has this number.
fn inode(folder: &Path, number: u64) -> u64 {
    fs::metadata(folder.join(format!("{number}.log"))).unwrap().ino()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// From the file, from a recovered file, and from memory after another log got the file.
    #[test]
    fn a_log_reads_the_same_wherever_it_is(
        split in any::<bool>(),
        appends in prop::collection::vec((any::<bool>(), 1usize..700, 0u64..300), 0..14),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let pool = pool(folder.path());
        let mut log = Log::new(&pool, if split { Streams::Split } else { Streams::One });
        let early = log.writer.reader();
        for (err, count, ms) in appends {
            log.now_ms += ms;
            log.append(if split && err { Stream::Err } else { Stream::Out }, count);
            log.check(&early, &log.writer.extent());
            let place = Place::new(folder.path(), 1);
            let recovered = place.recover(&Extent::default(), None).unwrap();
            log.check(&Reader::of_files(place, log.streams, STARTED), &recovered.extent);
        }
        let (extent, late) = (log.writer.extent(), log.writer.reader());
        let Some(short) = log.writer.settle().cloned() else {
            prop_assert!(extent.len > 4096);
            return Ok(());
        };
        prop_assert!(extent.len <= 4096);
        log.check(&early, &extent);
        let (place_holder, file) = (Log::new(&pool, Streams::One).writer, inode(folder.path(), 1));
        pool.give_back(std::mem::replace(&mut log.writer, place_holder));
        let mut next = Log::new(&pool, log.streams);
        prop_assert_eq!(inode(folder.path(), next.writer.number()), file);
        prop_assert!(!Place::new(folder.path(), 1).log().exists());
        next.say(Stream::Out, &[b'?'; 5000]);
        for reader in [early, late, Reader::of_short(short, log.streams, STARTED)] {
            log.check(&reader, &extent);
            prop_assert_eq!(reader.since(&extent, log.now_ms + RESOLUTION_MS).unwrap(), extent.len);
            reader.remove_files().unwrap();
        }
        let (extent, reader) = (next.writer.extent(), next.writer.reader());
        next.check(&reader, &extent);
    }
}

#[test]
fn a_log_of_many_stamps_stays_in_its_file() {
    for (count, is_short) in [(64, true), (65, false)] {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Log::new(&pool(folder.path()), Streams::Split);
        for number in 0..count {
            log.append(if number % 2 == 0 { Stream::Out } else { Stream::Err }, 1);
        }
        assert_eq!(log.writer.settle().is_some(), is_short);
        log.check(&log.writer.reader(), &log.writer.extent());
    }
}

/// The file is the only copy of these bytes.
#[test]
fn a_file_that_readers_need_is_not_reused() {
    let folder = tempfile::tempdir().unwrap();
    let pool = pool(folder.path());
    let mut log = Log::new(&pool, Streams::One);
    log.append(Stream::Out, 100);
    pool.give_back(log.writer);
    assert_eq!(pool.empty(), 0);
    assert_eq!(fs::metadata(folder.path().join("1.log")).unwrap().len(), 100);
}

/// The first of the two handles the file, and the other leaves it alone.
#[test]
fn a_file_is_removed_or_reused_and_never_both() {
    let folder = tempfile::tempdir().unwrap();
    let pool = pool(folder.path());
    for forgotten_first in [true, false] {
        let mut log = Log::new(&pool, Streams::Split);
        let number = log.writer.number();
        log.append(Stream::Err, 10);
        log.writer.settle().unwrap();
        let reader = log.writer.reader();
        if forgotten_first {
            reader.remove_files().unwrap();
        }
        pool.give_back(log.writer);
        reader.remove_files().unwrap();
        assert!(!folder.path().join(format!("{number}.log")).exists());
        assert_eq!(pool.empty(), usize::from(!forgotten_first));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "with its index");
    }
}

/// If the folder of an open file was removed, the file is created again where readers look for it.
/// A file that another engine created there is left alone.
#[test]
fn if_its_file_is_gone_a_log_gets_a_new_one_or_stays_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().join("logs");
    fs::create_dir(&logs).unwrap();
    let pool = pool(&logs);
    let mut taken = [0; 3].map(|_| Log::new(&pool, Streams::Split));
    fs::remove_dir_all(&logs).unwrap();
    taken[0].append(Stream::Err, 10);
    assert_eq!(fs::metadata(logs.join("1.log")).unwrap().len(), 10);
    fs::write(logs.join("2.log"), "another's").unwrap();
    taken[1].append(Stream::Err, 10);
    assert_eq!(taken[1].writer.failed().map(|failed| failed.at), Some(0));
    taken[2].append(Stream::Err, 10);
    fs::remove_file(logs.join("3.log")).unwrap();
    fs::write(logs.join("3.log"), "another's").unwrap();
    for log in &taken[..2] {
        log.check(&log.writer.reader(), &log.writer.extent());
    }
    taken.iter().for_each(|log| log.writer.reader().remove_files().unwrap());
    assert!(!logs.join("1.log").exists());
    for name in ["2.log", "3.log"] {
        assert_eq!(fs::read(logs.join(name)).unwrap(), b"another's");
    }
}

/// Readers of a log get only its bytes, while its file goes from one log to the next.
#[test]
fn no_reader_reads_bytes_of_the_next_log() {
    let folder = tempfile::tempdir().unwrap();
    let pool = Pool::new(folder.path().to_owned(), 1, 0);
    for round in 0..400 {
        let mut log = Log::new(&pool, Streams::Split);
        // Other lengths, runs and times than in the previous log.
        log.now_ms += round * 1000;
        let half = 100 + round % 1900;
        let bytes = vec![b'a' + (round % 26) as u8; half as usize];
        log.say(Stream::Out, &bytes);
        log.say(Stream::Err, &bytes);
        let (reader, extent, over) =
            (log.writer.reader(), log.writer.extent(), AtomicBool::new(false));
        let stamp = |offset, stream| Stamp { offset, stream, at_ms: STARTED + round * 1000 };
        let want = [stamp(0, Stream::Out), stamp(half, Stream::Err)];
        let file = inode(folder.path(), log.writer.number());
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        check_own(&reader, &extent, &bytes, want);
                        check_own(&reader.again(), &extent, &bytes, want);
                    }
                });
            }
            log.writer.settle().unwrap();
            pool.give_back(log.writer);
            let mut next = Log::new(&pool, Streams::Split);
            let next_file = inode(folder.path(), next.writer.number());
            next.now_ms = 7_000_000_000;
            (0..20).for_each(|_| next.say(Stream::Err, &[b'?'; 200]));
            over.store(true, Ordering::Relaxed);
            // Not before: the threads would never end.
            assert_eq!(next_file, file);
            next.writer.settle().unwrap();
            pool.give_back(next.writer);
        });
    }
}

fn check_own(reader: &Reader, extent: &Extent, half: &[u8], want: [Stamp; 2]) {
    let (live, mut into) = (Fixed(extent.clone()), [0; 5000]);
    let (piece, stamps) = reader.read_stamps(extent, &live, 0, &mut into).unwrap();
    let Piece::Bytes(count) = piece else { panic!("{piece:?}") };
    assert!(into[..count] == [half, half].concat()[..], "{count} bytes, some of another log");
    assert_eq!(stamps, want);
    assert_eq!(reader.stamps(0..extent.len, 9).unwrap().stamps, want);
    let after = want[1].at_ms + RESOLUTION_MS;
    assert_eq!(reader.since(extent, after).unwrap(), extent.len);
}
