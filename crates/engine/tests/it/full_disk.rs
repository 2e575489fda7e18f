//! A full disk costs output, but never a command.
#![expect(clippy::disallowed_methods, reason = "a test harness around the test, not a command")]

use std::path::{Path, PathBuf};
use std::process::Command;

use lastbyte_engine::{Engine, EnvEdit, Errno, Kept, Launch, OnQuota, Settings, Status, Streams};
use lastbyte_output::log::{Piece, Stream};
use lastbyte_testkit::{Anchor, pattern_bytes, script};

use crate::fixture::{finish, patiently, read, read_stream};
use lastbyte_testkit::inside;

/// A file system of 4 MiB for this test, in its own mount namespace; unmounted when dropped.
pub struct SmallDisk {
    folder: PathBuf,
}

impl SmallDisk {
    pub fn at(folder: &Path) -> Self {
        let mut mount = Command::new("mount");
        let status = mount.args(["-t", "tmpfs", "-o", "size=4m", "tmpfs"]).arg(folder).status();
        assert!(status.expect("mount is installed").success());
        Self { folder: folder.to_owned() }
    }
}

impl Drop for SmallDisk {
    /// A folder on which something is mounted cannot be removed.
    fn drop(&mut self) {
        _ = Command::new("umount").arg("--lazy").arg(&self.folder).status();
    }
}

pub const MOUNTS: [&str; 2] = ["--mount", "--propagation=private"];

#[tokio::test(flavor = "multi_thread")]
async fn a_command_ends_and_its_ending_reports_the_missing_output() {
    let name = "full_disk::a_command_ends_and_its_ending_reports_the_missing_output";
    if !inside(name, &MOUNTS) {
        return;
    }
    let state = tempfile::tempdir().unwrap();
    let _disk = SmallDisk::at(state.path());
    let anchor = Anchor::listen();
    let engine = Engine::new(Settings::new(state.path())).unwrap();
    let (variable, value) = anchor.env();
    let launch = |actions: &str| Launch {
        env: vec![EnvEdit::Set(variable.into(), value.clone())],
        ..Launch::argv(script(actions))
    };
    // Before, during and after it, other processes are not affected.
    let early = engine.start(launch("print early then hold")).await.unwrap().process;
    patiently("its first bytes", early.until_past(4)).await;

    let total = 20_000_000;
    let process = engine.start(launch(&format!("write-bytes {total}"))).await.unwrap().process;
    let ending = patiently("it ends", process.ended()).await;
    assert_eq!((ending.status, ending.final_len), (Status::Exited(0), total));
    let Kept::Failed { failed, dropped } = &ending.kept else { panic!("{:?}", ending.kept) };
    assert_eq!(failed.errno, Errno::NOSPC);
    let [gap] = dropped.ranges() else { panic!("{dropped:?}") };
    assert_eq!(gap.start, failed.at);
    let snapshot = process.snapshot();
    assert!(read(&process, &snapshot, 0..gap.start) == pattern_bytes(0..gap.start));
    assert!(read(&process, &snapshot, gap.end..total) == pattern_bytes(gap.end..total));
    assert!(total - gap.end >= 256 << 10, "a tail of 256 KiB is kept in memory");

    let mut split = launch("write-bytes 1000 then write-bytes 2000 err");
    split.streams = Streams::Split;
    let after = engine.start(split).await.unwrap().process;
    let (ending, _) = finish(&after).await;
    assert!(matches!(ending.kept, Kept::Failed { .. }), "{:?}", ending.kept);
    let snapshot = after.snapshot();
    assert!(read_stream(&after, &snapshot, Stream::Out) == pattern_bytes(0..1000));
    assert!(read_stream(&after, &snapshot, Stream::Err) == pattern_bytes(0..2000));

    anchor.wait_for(1);
    anchor.tell("exit 3");
    let (ending, bytes) = finish(&early).await;
    assert_eq!((ending.status, bytes.as_slice()), (Status::Exited(3), b"early".as_slice()));

    engine.forget(process.id()).unwrap();
    let again = engine.start(launch("print again")).await.unwrap().process;
    let (ending, bytes) = finish(&again).await;
    assert_eq!((&ending.kept, bytes.as_slice()), (&Kept::Whole, b"again".as_slice()));
}

#[tokio::test(flavor = "multi_thread")]
async fn late_output_on_a_full_disk_does_not_displace_earlier_output() {
    let name = "full_disk::late_output_on_a_full_disk_does_not_displace_earlier_output";
    if !inside(name, &MOUNTS) {
        return;
    }
    let state = tempfile::tempdir().unwrap();
    let _disk = SmallDisk::at(state.path());
    let anchor = Anchor::listen();
    let engine = Engine::new(Settings::new(state.path())).unwrap();
    let (variable, value) = anchor.env();
    let mut launch = Launch::argv(script("write-bytes 6000000 then leave-silent-holder"));
    launch.env = vec![EnvEdit::Set(variable.into(), value)];
    let process = engine.start(launch).await.unwrap().process;
    let ending = patiently("it ends", process.ended()).await;
    let tail = 6_000_000 - (200 << 10)..6_000_000;
    let before = read(&process, &process.snapshot(), tail.clone());
    assert!(before == pattern_bytes(tail.clone()));
    anchor.wait_for(1);
    anchor.tell("write-bytes 3000000");
    let late = process.wait_for(|snapshot| snapshot.extent.len == 9_000_000);
    let snapshot = patiently("late output", late).await;
    assert_eq!(ending.final_len, 6_000_000);
    assert!(read(&process, &snapshot, tail) == before);
}

/// The disk is full, and a slow reader with a hold must miss nothing: the command waits for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_reader_with_a_hold_misses_nothing_on_a_full_disk() {
    if !inside("full_disk::a_reader_with_a_hold_misses_nothing_on_a_full_disk", &MOUNTS) {
        return;
    }
    let state = tempfile::tempdir().unwrap();
    let _disk = SmallDisk::at(state.path());
    let engine = Engine::new(Settings::new(state.path())).unwrap();
    let total = 12_000_000;
    let mut launch = Launch::argv(script(&format!("write-bytes {total}")));
    launch.on_quota = OnQuota::Block;
    let process = engine.start(launch).await.unwrap().process;
    let hold = process.hold().expect("launched to block");
    let (reader, mut at, mut chunk) = (process.reader(), 0, vec![0; 30_000]);
    while at < total {
        let snapshot = patiently("more output", process.until_past(at)).await;
        let piece = reader.read(&snapshot, at, &mut chunk).unwrap();
        let Piece::Bytes(count) = piece else { panic!("{piece:?} at {at}") };
        let range = at..at + count as u64;
        assert!(chunk[..count] == pattern_bytes(range.clone()), "wrong in {range:?}");
        at = range.end;
        hold.advance(at);
    }
    let ending = patiently("it ends", process.ended()).await;
    assert_eq!((ending.status, ending.final_len), (Status::Exited(0), total));
}
