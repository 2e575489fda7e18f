//! What helpers hold on to, so that they end with their test.
//!
//! A helper connects to the anchor's socket and waits on it. When the [`Anchor`] is dropped, or
//! the test dies in whatever way, the kernel closes the socket and the helper ends. One thread
//! accepts helpers and notices those that go; nobody else changes the list.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, Signal};

use crate::PATIENCE;

/// The environment variable that tells `testchild` where its anchor is.
pub const ANCHOR_VARIABLE: &str = "TESTCHILD_ANCHOR";

/// What a helper waits for before it believes that it holds on.
const WELCOME: &[u8] = b"\n";

/// A socket that the helpers of one test hold on to; dropping it ends them all.
#[derive(Debug)]
pub struct Anchor {
    folder: tempfile::TempDir,
    helpers: Arc<Helpers>,
    /// Closed to end the thread.
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl Anchor {
    /// Begins to listen for helpers, in a folder of its own.
    pub fn listen() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let listener = UnixListener::bind(socket_in(folder.path())).expect("a socket in it too");
        let (stop, stopped) = UnixStream::pair().expect("a socket pair can be made");
        let helpers = Arc::new(Helpers::default());
        let thread = {
            let helpers = Arc::clone(&helpers);
            std::thread::spawn(move || helpers.attend(&listener, &stopped))
        };
        Self { folder, helpers, stop: Some(stop), thread: Some(thread) }
    }

    /// The variable to set in the environment of whatever becomes, or begets, a helper.
    pub fn env(&self) -> (&'static str, OsString) {
        (ANCHOR_VARIABLE, socket_in(self.folder.path()).into_os_string())
    }

    /// How many helpers hold on at this moment.
    pub fn count(&self) -> usize {
        self.helpers.lock().len()
    }

    /// The pids of the helpers that hold on at this moment, in order.
    pub fn pids(&self) -> Vec<u32> {
        self.helpers.lock().keys().copied().collect()
    }

    /// Waits until at least `count` helpers hold on; their pids.
    #[track_caller]
    pub fn wait_for(&self, count: usize) -> Vec<u32> {
        self.wait_until(&format!("{count} helpers are there"), |present| present >= count)
    }

    /// Waits until at most `count` helpers still hold on; their pids.
    #[track_caller]
    pub fn wait_for_at_most(&self, count: usize) -> Vec<u32> {
        self.wait_until(&format!("at most {count} helpers are left"), |present| present <= count)
    }

    /// Makes every helper that holds on perform one action with at most one argument:
    /// `print TEXT`, `eprint TEXT`, `write-bytes N`, `listen PORT`, `kill-self N`, `exit N`.
    pub fn tell(&self, action: &str) {
        assert!(!action.contains('\n'), "a line is one action; write a newline as \\n");
        let line = format!("{action}\n");
        for connection in self.helpers.lock().values() {
            // A helper that has just died cannot be told anything, and need not be.
            _ = (&**connection).write_all(line.as_bytes());
        }
    }

    #[track_caller]
    fn wait_until(&self, what: &str, enough: impl Fn(usize) -> bool) -> Vec<u32> {
        let guard = self.helpers.lock();
        let (guard, waited) = self
            .helpers
            .changed
            .wait_timeout_while(guard, PATIENCE, |present| !enough(present.len()))
            .unwrap_or_else(PoisonError::into_inner);
        let pids: Vec<u32> = guard.keys().copied().collect();
        assert!(!waited.timed_out(), "waited {PATIENCE:?} in vain: {what}, there are {pids:?}");
        pids
    }
}

impl Drop for Anchor {
    fn drop(&mut self) {
        // A stopped helper cannot see the socket close. While its connection is in the list its
        // pid is its own, or at worst that of a zombie.
        for pid in self.pids() {
            if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
                // It may have ended between the two lines.
                _ = rustix::process::kill_process(pid, Signal::CONT);
            }
        }
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic in it has been printed already, and a drop must not add another.
            _ = thread.join();
        }
        self.helpers.lock().clear();
    }
}

fn socket_in(folder: &Path) -> PathBuf {
    folder.join("anchor")
}

/// The connections of the helpers by pid.
#[derive(Debug, Default)]
struct Helpers {
    connections: Mutex<BTreeMap<u32, Arc<UnixStream>>>,
    changed: Condvar,
}

impl Helpers {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, Arc<UnixStream>>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Accepts and dismisses helpers until `stopped` is closed at its other end.
    fn attend(&self, listener: &UnixListener, stopped: &UnixStream) {
        loop {
            // A copy, so that nobody waits for the list while this thread waits for an event.
            let watched = self.lock().clone();
            let events = wait(listener, stopped, watched.values());
            if events.stopped {
                return;
            }
            for (pid, _) in watched.keys().zip(events.gone).filter(|(_, gone)| *gone) {
                self.lock().remove(pid);
            }
            if events.arrival {
                let (connection, _) = listener.accept().expect("a helper can be accepted");
                self.welcome(connection);
            }
            self.changed.notify_all();
        }
    }

    /// Puts a helper into the list and then lets it go on, so that whoever hears of it from the
    /// helper finds it here.
    fn welcome(&self, connection: UnixStream) {
        let connection = Arc::new(connection);
        self.lock().insert(peer_pid(&connection), Arc::clone(&connection));
        // It may be dead already; the next wait notices.
        _ = (&*connection).write_all(WELCOME);
    }
}

struct Events {
    stopped: bool,
    arrival: bool,
    /// For each helper whether it is gone. They send nothing, so any event is their end.
    gone: Vec<bool>,
}

fn wait<'a>(
    listener: &UnixListener,
    stopped: &UnixStream,
    helpers: impl Iterator<Item = &'a Arc<UnixStream>>,
) -> Events {
    let mut polled =
        vec![PollFd::new(stopped, PollFlags::IN), PollFd::new(listener, PollFlags::IN)];
    polled.extend(helpers.map(|helper| PollFd::new(&**helper, PollFlags::IN)));
    while let Err(error) = rustix::event::poll(&mut polled, None) {
        assert_eq!(error, rustix::io::Errno::INTR, "poll fails only when interrupted");
    }
    let mut happened = polled.iter().map(|fd| !fd.revents().is_empty());
    Events {
        stopped: happened.next().expect("the first of two"),
        arrival: happened.next().expect("the second of two"),
        gone: happened.collect(),
    }
}

/// The kernel's word for who connected: nothing to parse, and true whatever the helper says.
fn peer_pid(connection: &UnixStream) -> u32 {
    let credentials =
        rustix::net::sockopt::socket_peercred(connection).expect("a unix socket has a peer");
    credentials.pid.as_raw_nonzero().get().unsigned_abs()
}
