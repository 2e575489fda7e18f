use std::fs;
use std::io::Write;
use std::os::fd::OwnedFd;

use lastbyte_output::log::{LogFile, Place, Progress, Quota, Streams};
use lastbyte_sys::memory_file;

use super::*;

const SECRET: &str = "correct-horse-battery";
/// Less than a pipe holds.
const CHUNK: usize = 50_000;

/// Goes on with the files of a program that is gone.
fn taken_over(file: &OwnedFd, staged: &OwnedFd, place: &Place) -> (Masking, Writer) {
    let entered = |file: &OwnedFd, purpose| Entered::new(file.try_clone().unwrap(), None, purpose);
    let staged = [Some(entered(staged, Purpose::Staged)), None];
    let mut masking = Masking::resume(entered(file, Purpose::Secrets), staged).unwrap();
    let (quota, progress) = (Quota::DEFAULT, Progress { len: 0, final_len: None, failed: None });
    let mut writer = Writer::resume(place.clone(), Streams::One, quota, 0, progress).unwrap();
    masking.catch_up(&mut writer, 0);
    (masking, writer)
}

/// Each program dies after it has stored what it took, and before it writes the next checkpoint. There is
/// more output than is kept in memory at once.
#[test]
fn a_program_that_dies_between_a_store_and_the_next_checkpoint_costs_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::new(folder.path(), 1);
    drop(Writer::new(LogFile::at(place.clone()), Streams::One, Quota::DEFAULT, 0));
    let [file, staged] = [(); 2].map(|()| memory_file::create("test").unwrap());
    checkpoint::begin(&file, &[Secret::new("TOKEN", SECRET).unwrap()]).unwrap();
    let text: String = (0..40_000).map(|line| format!("{line} {SECRET}.\n")).collect();
    let (ours, theirs) = lastbyte_sys::pipe::pipe().unwrap();
    let mut theirs = fs::File::from(theirs);
    for chunk in text.as_bytes().chunks(CHUNK) {
        let (mut masking, mut writer) = taken_over(&file, &staged, &place);
        theirs.write_all(chunk).unwrap();
        let mut taken = 0;
        while taken < chunk.len() {
            match masking.pull(&mut writer, &ours, (Stream::Out, CHUNK), 0) {
                Pulled::Bytes(count) => taken += count,
                other => panic!("{other:?} after {taken} bytes"),
            }
        }
    }
    let (mut masking, mut writer) = taken_over(&file, &staged, &place);
    masking.close(&mut writer, Stream::Out, 0);
    let stored = fs::read_to_string(folder.path().join("1.log")).unwrap();
    assert!(stored == text.replace(SECRET, "***TOKEN***"), "{} bytes", stored.len());
    assert_eq!(masking.masked(), 40_000);
}
