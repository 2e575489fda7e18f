//! The arrival time of bytes is known as long as the bytes are, also to the next engine.

use std::time::{Duration, SystemTime};

use lastbyte_engine::{Process, Streams, WindowSize};
use lastbyte_output::log::{RESOLUTION, Stamp};
use lastbyte_testkit::eventually;

use crate::fixture::{finish, patiently};
use crate::home::{Home, close};

fn stamps(process: &Process) -> Vec<Stamp> {
    let stamped = process.reader().stamps(0..process.snapshot().extent.len, 100).unwrap();
    assert_eq!(stamped.until, process.snapshot().extent.len);
    stamped.stamps
}

fn since(process: &Process, time: SystemTime) -> u64 {
    process.reader().since(&process.snapshot(), time).unwrap()
}

/// When a stamp was made.
fn time(stamp: Stamp) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(stamp.at_ms)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_times_of_bytes_survive_a_restart() {
    let home = Home::new();
    let engine = home.open();
    let mut processes = Vec::new();
    let terminal = Streams::Pty(WindowSize { rows: 24, cols: 80 });
    for streams in [Streams::Merged, Streams::Split, terminal] {
        let launch = lastbyte_engine::Launch { streams, ..home.launch("hold") };
        processes.push(engine.start(launch).await.unwrap().process);
    }
    home.anchor.wait_for(3);
    home.anchor.tell("print a");
    for process in &processes {
        patiently("the first byte", process.until_past(0)).await;
    }
    let old = SystemTime::now();
    eventually("the clock goes on", || SystemTime::now() > old + RESOLUTION);
    let new = SystemTime::now();
    home.anchor.tell("print b");
    for process in &processes {
        patiently("the second byte", process.until_past(1)).await;
    }
    let newest = SystemTime::now();
    home.anchor.tell("exit 0");
    let check = |process: &Process| {
        let stamps = stamps(process);
        assert_eq!(stamps.iter().map(|stamp| stamp.offset).collect::<Vec<_>>(), [0, 1]);
        // A stamp has whole milliseconds.
        let millisecond = Duration::from_millis(1);
        assert!(process.spec().started < time(stamps[0]) + millisecond && time(stamps[0]) <= old);
        assert!(new < time(stamps[1]) + millisecond && time(stamps[1]) <= newest);
        assert_eq!((since(process, process.spec().started), since(process, new)), (0, 1));
        assert_eq!(since(process, newest + RESOLUTION), 2, "nothing is that new");
    };
    for process in &processes {
        finish(process).await;
        check(process);
    }
    let ids: Vec<_> = processes.iter().map(Process::id).collect();
    let before: Vec<_> = processes.iter().map(stamps).collect();
    drop(processes);
    close(engine).await;
    let engine = home.open();
    let restored: Vec<_> = ids.iter().map(|id| engine.get(*id).unwrap()).collect();
    assert_eq!(restored.iter().map(stamps).collect::<Vec<_>>(), before);
    restored.iter().for_each(check);
}
