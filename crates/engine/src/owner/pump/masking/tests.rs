use std::fs;
use std::io::Write;
use std::os::fd::OwnedFd;

use lastbyte_output::log::{LogFile, Place, Progress, Quota, Streams};
use lastbyte_sys::memory_file;

use super::*;

const SECRET: &str = "correct-horse-battery";
/// Less than a pipe holds.
const CHUNK: usize = 50_000;

/// What outlives a program, and its log.
struct Files {
    file: OwnedFd,
    staged: [OwnedFd; 2],
    place: Place,
    folder: tempfile::TempDir,
}

impl Files {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::new(folder.path(), 1);
        drop(Writer::new(LogFile::at(place.clone()), Streams::One, Quota::DEFAULT, 0));
        let [file, out, error] = [(); 3].map(|()| memory_file::create("test").unwrap());
        checkpoint::begin(&file, &[Secret::new("TOKEN", SECRET).unwrap()]).unwrap();
        Self { file, staged: [out, error], place, folder }
    }

    /// Goes on with the files of a program that is gone.
    fn taken_over(&self) -> (Masking, Writer) {
        let entered =
            |file: &OwnedFd, purpose| Entered::new(file.try_clone().unwrap(), None, purpose);
        let purposes = [Purpose::Staged, Purpose::StagedError];
        let staged = [0, 1].map(|index| Some(entered(&self.staged[index], purposes[index])));
        let mut masking = Masking::resume(entered(&self.file, Purpose::Secrets), staged).unwrap();
        let (quota, progress) =
            (Quota::DEFAULT, Progress { len: 0, final_len: None, failed: None });
        let mut writer =
            Writer::resume(self.place.clone(), Streams::One, quota, 0, progress).unwrap();
        masking.catch_up(&mut writer, 0);
        (masking, writer)
    }

    fn stored(&self) -> String {
        fs::read_to_string(self.folder.path().join("1.log")).unwrap()
    }
}

/// Gives the masker of a stream these bytes.
fn give(masking: &mut Masking, writer: &mut Writer, stream: Stream, text: &str) {
    let (ours, theirs) = lastbyte_sys::pipe::pipe().unwrap();
    fs::File::from(theirs).write_all(text.as_bytes()).unwrap();
    let pulled = masking.pull(writer, &ours, (stream, CHUNK), 0);
    assert_eq!(pulled, Pulled::Bytes(text.len()));
}

/// Each program dies after it has stored what it held back at the end of a stream, and the next ones
/// store the other stream first.
#[test]
fn what_is_held_back_at_the_end_of_a_stream_is_stored_once() {
    for held in ["c", "co", "correct-horse"] {
        let files = Files::new();
        let (mut masking, mut writer) = files.taken_over();
        give(&mut masking, &mut writer, Stream::Out, &format!("{SECRET} say {held}"));
        masking.close(&mut writer, Stream::Out, 0);
        for _ in 0..3 {
            let (mut masking, mut writer) = files.taken_over();
            give(&mut masking, &mut writer, Stream::Err, ".");
        }
        let (mut masking, mut writer) = files.taken_over();
        masking.close(&mut writer, Stream::Out, 0);
        assert_eq!(files.stored(), format!("***TOKEN*** say {held}..."));
        assert_eq!(masking.masked(), 1);
    }
}

/// The program dies before it has written down that an ending has shown a byte or two.
#[test]
fn what_an_ending_shows_is_stored_once() {
    for (then, want) in [("x", "say cox"), (&SECRET[2..], "say co***TOKEN***"), ("", "say co")] {
        let files = Files::new();
        let (mut masking, mut writer) = files.taken_over();
        give(&mut masking, &mut writer, Stream::Out, "say co");
        masking.end(&mut writer, 0);
        assert_eq!(files.stored(), "say co");
        // As it was when the bytes were stored: it says where they begin.
        let mut checkpoint = checkpoint::read(&files.file).unwrap().0;
        (checkpoint.log_len, checkpoint.reached[0].state.shown) = (4, 0);
        checkpoint::write(&files.file, &checkpoint);
        let (mut masking, mut writer) = files.taken_over();
        if !then.is_empty() {
            give(&mut masking, &mut writer, Stream::Out, then);
        }
        masking.close(&mut writer, Stream::Out, 0);
        assert_eq!(files.stored(), want);
    }
}

/// Each program dies after it has stored what it took, and before it writes the next checkpoint. There is
/// more output than is kept in memory at once.
#[test]
fn a_program_that_dies_between_a_store_and_the_next_checkpoint_costs_nothing() {
    let files = Files::new();
    let text: String = (0..40_000).map(|line| format!("{line} {SECRET}.\n")).collect();
    let (ours, theirs) = lastbyte_sys::pipe::pipe().unwrap();
    let mut theirs = fs::File::from(theirs);
    for chunk in text.as_bytes().chunks(CHUNK) {
        let (mut masking, mut writer) = files.taken_over();
        theirs.write_all(chunk).unwrap();
        let mut taken = 0;
        while taken < chunk.len() {
            match masking.pull(&mut writer, &ours, (Stream::Out, CHUNK), 0) {
                Pulled::Bytes(count) => taken += count,
                other => panic!("{other:?} after {taken} bytes"),
            }
        }
    }
    let (mut masking, mut writer) = files.taken_over();
    masking.close(&mut writer, Stream::Out, 0);
    let stored = files.stored();
    assert!(stored == text.replace(SECRET, "***TOKEN***"), "{} bytes", stored.len());
    assert_eq!(masking.masked(), 40_000);
}
