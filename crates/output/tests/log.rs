//! The log with real pipes and files.
#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

use std::cell::RefCell;
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::mpsc::channel;

use lastbyte_output::log::{
    Extent, Horizon, LogFile, Piece, Place, Pulled, Quota, Run, Stream, Streams, Writer,
};
use proptest::prelude::*;

/// The published extent, as from an owner.
struct Published(RefCell<Extent>);

impl Horizon for Published {
    fn extent(&self) -> Extent {
        self.0.borrow().clone()
    }
}

/// A writer with a pipe for each stream.
struct Fixture {
    writer: Writer,
    published: Published,
    out: (OwnedFd, File),
    err: (OwnedFd, File),
    _folder: tempfile::TempDir,
}

fn pipe() -> (OwnedFd, File) {
    let (read, write) = lastbyte_sys::pipe::pipe().unwrap();
    lastbyte_sys::pipe::set_nonblocking(&read).unwrap();
    (read, write.into())
}

impl Fixture {
    fn new(streams: Streams, quota: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::new(folder.path(), 1);
        Self::at(place, streams, quota, folder)
    }

    /// A log that cannot be created, as on a disk that fails.
    fn without_a_disk(streams: Streams) -> Self {
        let place = Place::new(Path::new("/no/such/folder"), 1);
        Self::at(place, streams, Quota::LEAST, tempfile::tempdir().unwrap())
    }

    fn at(place: Place, streams: Streams, quota: u64, folder: tempfile::TempDir) -> Self {
        let writer = Writer::new(LogFile::at(place), streams, Quota::new(quota).unwrap(), 5);
        let published = Published(RefCell::default());
        Self { writer, published, out: pipe(), err: pipe(), _folder: folder }
    }

    fn append(&mut self, stream: Stream, bytes: &[u8]) {
        let (read, write) = match stream {
            Stream::Out => &mut self.out,
            Stream::Err => &mut self.err,
        };
        for part in bytes.chunks(60_000) {
            write.write_all(part).unwrap();
            let mut left = part.len();
            while left > 0 {
                let Pulled::Bytes(count) = self.writer.pull(&*read, stream, left, 5) else {
                    panic!("the bytes are there")
                };
                left -= count;
            }
        }
    }

    fn publish(&mut self) {
        self.published.0.replace(self.writer.extent());
        self.writer.give_back(&self.published.extent());
    }

    /// The whole log with its runs, read in chunks of this size.
    fn read_all(&self, chunk: usize) -> (Vec<u8>, Vec<Run>) {
        let (reader, extent) = (self.writer.reader(), self.writer.extent());
        let (mut at, mut into) = (0, vec![0; chunk]);
        let (mut bytes, mut runs) = (Vec::new(), Vec::new());
        loop {
            let (piece, found) = reader.read_runs(&extent, &self.published, at, &mut into).unwrap();
            match piece {
                Piece::Bytes(count) => {
                    bytes.extend(&into[..count]);
                    runs.extend(found);
                    at += count as u64;
                }
                Piece::Dropped(range) => at = range.end,
                Piece::End => return (bytes, runs),
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_chunking_reads_back_the_same(
        appends in prop::collection::vec((any::<bool>(), 1usize..5000), 1..40),
        chunk in 1usize..10_000,
    ) {
        let mut fixture = Fixture::new(Streams::Split, 1 << 20);
        let (mut want, mut want_streams) = (Vec::new(), Vec::new());
        for (number, (out, len)) in appends.into_iter().enumerate() {
            let stream = if out { Stream::Out } else { Stream::Err };
            let bytes: Vec<u8> = (0..len).map(|n| (n * 7 + number) as u8).collect();
            fixture.append(stream, &bytes);
            fixture.publish();
            want.extend(&bytes);
            want_streams.extend(vec![stream; len]);
        }
        let (bytes, runs) = fixture.read_all(chunk);
        prop_assert!(bytes == want);
        let streams: Vec<Stream> = runs
            .iter()
            .flat_map(|run| vec![run.stream; (run.range.end - run.range.start) as usize])
            .collect();
        prop_assert!(streams == want_streams);
    }
}

/// The kernel can report the end of a pipe that still has a byte, if the writer writes and closes
/// at that moment. This happens about once in several thousand tries.
#[test]
fn a_byte_written_just_before_the_end_is_never_missed() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::new(folder.path(), 1);
    let mut writer = Writer::new(LogFile::at(place), Streams::Split, Quota::DEFAULT, 5);
    let (sender, receiver) = channel::<File>();
    let peer = std::thread::spawn(move || {
        let mut delay = 1u32;
        loop {
            match receiver.try_recv() {
                Ok(mut end) => {
                    delay = delay.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (0..delay >> 22).for_each(|_| std::hint::spin_loop());
                    end.write_all(b"x").unwrap();
                }
                Err(std::sync::mpsc::TryRecvError::Empty) => std::hint::spin_loop(),
                Err(std::sync::mpsc::TryRecvError::Disconnected) => return,
            }
        }
    });
    for number in 0..20_000u64 {
        let (read, write) = pipe();
        sender.send(write).unwrap();
        let stream = if number.is_multiple_of(2) { Stream::Out } else { Stream::Err };
        while writer.pull(&read, stream, 100, 5) != Pulled::End {
            if writer.extent().len > number {
                break;
            }
        }
        assert_eq!(writer.extent().len, number + 1, "an end with the byte still in the pipe");
    }
    drop(sender);
    peer.join().unwrap();
}

#[test]
fn the_file_has_plain_bytes_and_only_this_user_can_read_it() {
    use std::os::unix::fs::PermissionsExt;
    let mut fixture = Fixture::new(Streams::One, 1 << 20);
    fixture.append(Stream::Out, b"just bytes\n");
    let path = fixture._folder.path().join("1.log");
    assert_eq!(std::fs::read(&path).unwrap(), b"just bytes\n");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn reading_a_truncated_file_is_an_error() {
    let mut fixture = Fixture::new(Streams::One, 1 << 20);
    fixture.append(Stream::Out, &[b'x'; 20_000]);
    fixture.publish();
    let (reader, extent) = (fixture.writer.reader(), fixture.published.extent());
    File::options()
        .write(true)
        .open(fixture._folder.path().join("1.log"))
        .unwrap()
        .set_len(10_000)
        .unwrap();
    let mut into = [0; 20_000];
    let there = reader.read(&extent, &fixture.published, 0, &mut into).unwrap();
    assert_eq!(there, Piece::Bytes(10_000));
    let error = reader.read(&extent, &fixture.published, 10_000, &mut into).unwrap_err();
    assert_eq!(error.source.kind(), std::io::ErrorKind::UnexpectedEof);
    assert_eq!(reader.read(&extent, &fixture.published, 20_000, &mut into).unwrap(), Piece::End);
}

#[test]
fn streams_whose_index_was_removed_are_an_error_and_not_guessed() {
    let mut fixture = Fixture::new(Streams::Split, 1 << 20);
    fixture.append(Stream::Err, b"error\n");
    fixture.publish();
    std::fs::remove_file(fixture._folder.path().join("1.index")).unwrap();
    let (reader, extent) = (fixture.writer.reader(), fixture.published.extent());
    let error = reader.read_runs(&extent, &fixture.published, 0, &mut [0; 9]).unwrap_err();
    assert_eq!(error.source.kind(), std::io::ErrorKind::NotFound);
    let piece = reader.read(&extent, &fixture.published, 0, &mut [0; 9]).unwrap();
    assert_eq!(piece, Piece::Bytes(6), "the bytes are there");
}

#[test]
fn after_a_disk_failure_the_newest_bytes_and_their_streams_are_kept() {
    let mut fixture = Fixture::without_a_disk(Streams::Split);
    fixture.append(Stream::Out, b"01234");
    fixture.append(Stream::Err, b"56789");
    fixture.publish();
    let (bytes, runs) = fixture.read_all(3);
    assert_eq!(bytes, b"0123456789");
    let out: u64 = runs
        .iter()
        .filter(|run| run.stream == Stream::Out)
        .map(|run| run.range.end - run.range.start)
        .sum();
    assert_eq!(out, 5);
    assert_eq!(fixture.writer.failed().map(|failed| failed.at), Some(0));
}

/// Bytes that newer ones displace in memory are reported as dropped, even before this is published.
#[test]
fn bytes_displaced_in_memory_are_reported_as_dropped_at_once() {
    let mut fixture = Fixture::without_a_disk(Streams::One);
    fixture.append(Stream::Out, &[b'a'; 256 << 10]);
    fixture.publish();
    let published = fixture.published.extent();
    fixture.append(Stream::Out, &[b'b'; 1000]);
    let reader = fixture.writer.reader();
    let piece = reader.read(&published, &fixture.published, 0, &mut [0; 100]).unwrap();
    assert_eq!(piece, Piece::Dropped(0..1000));
}

/// Bytes that were dropped after they were copied must not get the stream of others.
#[test]
fn bytes_dropped_during_a_read_have_no_runs() {
    let mut fixture = Fixture::new(Streams::Split, Quota::LEAST);
    let step = |fixture: &mut Fixture, count: usize| {
        for _ in 0..count {
            fixture.append(Stream::Out, b"ooo");
            fixture.append(Stream::Err, b"e");
            fixture.publish();
        }
    };
    step(&mut fixture, 15_000);
    let before = fixture.published.extent();
    let mut chunk = [0; 400];
    let at = before.dropped.ranges().last().map_or(50_000, |gone| gone.end) + 400;
    let reader = fixture.writer.reader();
    let (piece, runs) = reader.read_runs(&before, &fixture.published, at, &mut chunk).unwrap();
    assert_eq!((piece, runs.len()), (Piece::Bytes(400), 200));
    step(&mut fixture, 40_000);
    let (piece, runs) = reader.read_runs(&before, &fixture.published, at, &mut chunk).unwrap();
    assert!(matches!(piece, Piece::Dropped(_)), "{piece:?}");
    assert_eq!(runs, []);
}

/// Short runs make the index larger than the bytes, but the newest bytes are kept.
#[test]
fn short_runs_do_not_displace_the_newest_bytes() {
    for quota in [Quota::LEAST, 400 << 10] {
        let mut fixture = Fixture::new(Streams::Split, quota);
        for number in 0..300_000 {
            let stream = if number % 2 == 0 { Stream::Out } else { Stream::Err };
            fixture.append(stream, b"x");
            fixture.publish();
            if let Some(gone) = fixture.writer.extent().dropped.ranges().last() {
                let newest = fixture.writer.extent().len - gone.end;
                assert!(newest >= quota / 16, "{newest} bytes left of a quota of {quota}");
            }
            assert!(fixture.writer.kept() <= quota + quota / 8, "{}", fixture.writer.kept());
        }
    }
}
