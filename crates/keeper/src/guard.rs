//! A guard: for a server whose commands must not outlive it.
//!
//! The guard is the parent of the server and adopts what that leaves behind. If the server dies, the
//! guard kills everything below itself. If the guard dies, the server hears of it and stops.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use lastbyte_sys::own_signals::{self, SignalQueue};
use lastbyte_sys::worker::{Program, Worker, take_control};
use lastbyte_sys::{Signal, Status, adopted, orphans, packets};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, kill_process};

/// The variable by which a server knows that it has a guard.
const VARIABLE: &str = "LASTBYTE_GUARDED";

const HEARD: [Signal; 5] = [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT, Signal::CHLD];

/// How long to go on killing what does not die.
const PATIENCE: Duration = Duration::from_secs(10);
const SOON: Duration = Duration::from_millis(10);

/// The server's end of the socket to its guard.
#[derive(Debug)]
pub struct Guarded(OwnedFd);

impl Guarded {
    /// `None` in a program that has no guard. To be called before it starts a thread.
    pub fn take() -> io::Result<Option<Self>> {
        Ok(take_control(VARIABLE)?.map(Self))
    }

    /// Blocks until the guard is dead.
    pub fn until_gone(&self) {
        while !packets::is_closed(&self.0) {
            wait_for(&[self.0.as_fd()], None);
        }
    }
}

/// Runs this program as a server and returns how it ended. For a program with one thread that has no
/// children.
pub fn guard(program: &Program) -> io::Result<Status> {
    own_signals::prepare_for_children();
    let signals = SignalQueue::open(&HEARD)?;
    orphans::adopt()?;
    let (_ours, theirs) = packets::pair()?;
    let server = Worker::start(program, VARIABLE, theirs.as_fd(), None)?;
    drop(theirs);
    let status = loop {
        wait_for(&[signals.as_fd(), server.as_fd()], None);
        while let Some(signal) = signals.next() {
            if signal != Signal::CHLD {
                server.signal(signal);
            }
        }
        match adopted::reap(server.pid) {
            Ok(None) => {}
            Ok(Some((status, _))) => break status,
            Err(errno) => return Err(errno.into()),
        }
    };
    kill_all_below();
    Ok(status)
}

/// Whatever loses its parent becomes our child, so this ends when nothing below us lives.
fn kill_all_below() {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        let children = orphans::children();
        if children.is_empty() {
            return;
        }
        for pid in children {
            if let (Ok(None), Some(child)) = (adopted::reap(pid), Pid::from_raw(pid)) {
                // It is our child and not reaped, so the number is its own.
                _ = kill_process(child, rustix::process::Signal::KILL);
            }
        }
        wait_for(&[], Some(SOON));
    }
}

fn wait_for(descriptors: &[BorrowedFd<'_>], at_most: Option<Duration>) {
    let mut polled: Vec<_> = descriptors.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
    let at_most = at_most.and_then(|time| time.try_into().ok());
    // Everything is looked at afterwards, whatever the answer.
    _ = poll(&mut polled, at_most.as_ref());
}
