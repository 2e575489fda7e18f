//! A recovered log has the same extent as its writer published.
#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

use std::fs::{self, File};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::time::Duration;

use lastbyte_output::log::{
    Dropped, Extent, Horizon, LogFile, Piece, Place, Quota, Reader, Stream, Streams, Writer,
};

struct Fixed(Extent);

impl Horizon for Fixed {
    fn extent(&self) -> Extent {
        self.0.clone()
    }
}

struct Fixture {
    place: Place,
    writer: Writer,
    pipe: (OwnedFd, File),
    _folder: tempfile::TempDir,
}

impl Fixture {
    fn new(streams: Streams) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::new(folder.path(), 1);
        let writer =
            Writer::new(LogFile::at(place.clone()), streams, Quota::new(Quota::LEAST).unwrap(), 5);
        let (read, write) = lastbyte_sys::pipe::pipe().unwrap();
        lastbyte_sys::pipe::set_nonblocking(&read).unwrap();
        Self { place, writer, pipe: (read, write.into()), _folder: folder }
    }

    /// Appends `count` bytes, none of them zero, and frees what this drops.
    fn append(&mut self, stream: Stream, count: usize) {
        for _ in 0..count / 1000 {
            self.pipe.1.write_all(&[b'x'; 1000]).unwrap();
            self.writer.pull(&self.pipe.0, stream, 1000, 5);
            self.writer.give_back(&self.writer.extent());
        }
    }

    /// The number of bytes that a reader gets; checks each of them.
    fn readable(&self, extent: &Extent, streams: Streams) -> u64 {
        let reader = Reader::of_files(self.place.clone(), streams, 5);
        let live = Fixed(extent.clone());
        let (mut at, mut got, mut chunk) = (0, 0, vec![0; 5000]);
        loop {
            match reader.read_runs(extent, &live, at, &mut chunk).unwrap() {
                (Piece::Bytes(count), runs) => {
                    assert!(chunk[..count].iter().all(|byte| *byte == b'x'), "a zero at {at}");
                    assert_eq!(runs.last().unwrap().range.end, at + count as u64);
                    at += count as u64;
                    got += count as u64;
                }
                (Piece::Dropped(range), _) => at = range.end,
                (Piece::End, _) => return got,
            }
        }
    }
}

#[test]
fn the_length_and_holes_of_a_file_are_the_extent_of_a_lost_log() {
    for streams in [Streams::One, Streams::Split] {
        let mut fixture = Fixture::new(streams);
        assert_eq!(
            fixture.place.recover(&Extent::default(), None).unwrap().extent,
            Extent::default()
        );
        fixture.append(Stream::Out, 700_000);
        fixture.append(Stream::Out, 300_000);
        let published = fixture.writer.extent();
        assert!(!published.dropped.is_empty());
        let recovered = fixture.place.recover(&Extent::default(), None).unwrap();
        assert_eq!(recovered.extent, published);
        assert!(recovered.disk_bytes.abs_diff(fixture.writer.kept()) < 8192, "{recovered:?}");
        let kept = published.len - published.dropped.bytes();
        assert_eq!(fixture.readable(&recovered.extent, streams), kept);
    }
}

#[test]
fn late_output_and_its_dropped_ranges_are_recovered() {
    let mut fixture = Fixture::new(Streams::One);
    fixture.append(Stream::Out, 400_000);
    fixture.writer.finish();
    let ended = fixture.writer.extent();
    assert_eq!(fixture.place.recover(&ended, None).unwrap().extent, ended);
    fixture.append(Stream::Out, 400_000);
    let published = fixture.writer.extent();
    assert_eq!(published.dropped.ranges().len(), 2);
    assert_eq!(fixture.place.recover(&ended, None).unwrap().extent, published);
}

#[test]
fn bytes_missing_from_the_file_are_reported_as_dropped() {
    let mut fixture = Fixture::new(Streams::One);
    fixture.append(Stream::Out, 10_000);
    let ended = fixture.writer.extent();
    let check = |missing: std::ops::Range<u64>| {
        let dropped = Dropped::covering([missing]);
        let recovered = fixture.place.recover(&ended, None).unwrap().extent;
        assert_eq!(recovered, Extent { len: 10_000, dropped });
        let kept = recovered.len - recovered.dropped.bytes();
        assert_eq!(fixture.readable(&recovered, Streams::One), kept);
    };
    check(0..0);
    File::options().write(true).open(fixture.place.log()).unwrap().set_len(3_000).unwrap();
    check(3_000..10_000);
    fs::remove_file(fixture.place.log()).unwrap();
    check(0..10_000);
    assert_eq!(fixture.place.recover(&Extent::default(), None).unwrap().extent, Extent::default());
}

/// The length of a file may reach the disk without its last bytes.
#[test]
fn after_a_power_loss_zeros_at_the_end_are_dropped() {
    let mut fixture = Fixture::new(Streams::One);
    fixture.append(Stream::Out, 10_000);
    let ended = fixture.writer.extent();
    let file = File::options().write(true).open(fixture.place.log()).unwrap();
    // The end of a block in which not all was written, and a block that was not written at all.
    file.set_len(7_500).unwrap();
    file.set_len(10_000).unwrap();
    let modified = file.metadata().unwrap().modified().unwrap();
    for ended in [ended, Extent::default()] {
        let recover = |since| fixture.place.recover(&ended, since).unwrap().extent;
        let lost = recover(Some(modified));
        let dropped = Dropped::covering(std::iter::once(7_500..10_000));
        assert_eq!(lost, Extent { len: 10_000, dropped });
        assert_eq!(fixture.readable(&lost, Streams::One), 7_500);
        // Written long before the power went, or by a machine that stayed up.
        let before = recover(Some(modified + Duration::from_secs(1)));
        assert_eq!(before, recover(None));
        assert!(!before.dropped.ranges().contains(&(7_500..10_000)), "{before:?}");
    }
}

/// So that not everything is reported as standard output.
#[test]
fn without_its_index_a_log_has_its_bytes_but_no_streams() {
    let mut fixture = Fixture::new(Streams::Split);
    fixture.append(Stream::Out, 5_000);
    fixture.append(Stream::Err, 5_000);
    let index = fixture.place.index();
    assert_eq!(index, fixture.place.log().with_file_name("1.index"));
    fs::rename(&index, index.with_extension("elsewhere")).unwrap();
    let extent = fixture.place.recover(&Extent::default(), None).unwrap().extent;
    assert_eq!(extent, fixture.writer.extent());
    let (live, mut chunk) = (Fixed(extent.clone()), vec![0; 20_000]);
    let reader = Reader::of_files(fixture.place.clone(), Streams::Split, 5);
    assert_eq!(reader.read(&extent, &live, 0, &mut chunk).unwrap(), Piece::Bytes(10_000));
    let refused = reader.read_runs(&extent, &live, 0, &mut chunk).unwrap_err();
    assert_eq!(refused.source.kind(), std::io::ErrorKind::NotFound);
}
