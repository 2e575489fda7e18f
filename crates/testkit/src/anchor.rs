//! A socket that ties helper processes to their test.
//!
//! A helper connects to the anchor's socket and waits on it. When the [`Anchor`] is dropped, or the
//! test dies, the kernel closes the socket and the helper exits. One thread accepts helpers and
//! removes those that exit; nothing else changes the list.

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

/// The environment variable with the path of the anchor's socket.
pub const ANCHOR_VARIABLE: &str = "TESTCHILD_ANCHOR";

/// Sent to a helper once it is in the list.
const WELCOME: &[u8] = b"\n";

/// The socket that the helpers of one test are connected to; dropping it ends them all.
#[derive(Debug)]
pub struct Anchor {
    folder: tempfile::TempDir,
    helpers: Arc<Helpers>,
    /// Closed to end the thread.
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl Anchor {
    /// Listens for helpers in a new temporary folder.
    pub fn listen() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be created");
        let listener = UnixListener::bind(socket_in(folder.path())).expect("it can hold a socket");
        let (stop, stopped) = UnixStream::pair().expect("a socket pair can be created");
        let helpers = Arc::new(Helpers::default());
        let thread = {
            let helpers = Arc::clone(&helpers);
            std::thread::spawn(move || helpers.serve(&listener, &stopped))
        };
        Self { folder, helpers, stop: Some(stop), thread: Some(thread) }
    }

    /// The variable to set in the environment of a helper or its ancestor.
    pub fn env(&self) -> (&'static str, OsString) {
        (ANCHOR_VARIABLE, socket_in(self.folder.path()).into_os_string())
    }

    /// How many helpers are connected.
    pub fn count(&self) -> usize {
        self.helpers.lock().len()
    }

    /// The pids of the connected helpers, sorted.
    pub fn pids(&self) -> Vec<u32> {
        self.helpers.lock().keys().copied().collect()
    }

    /// Waits until at least `count` helpers are connected; returns their pids.
    #[track_caller]
    pub fn wait_for(&self, count: usize) -> Vec<u32> {
        self.wait_until(&format!("{count} helpers are connected"), |present| present >= count)
    }

    /// Waits until at most `count` helpers are connected; returns their pids.
    #[track_caller]
    pub fn wait_for_at_most(&self, count: usize) -> Vec<u32> {
        self.wait_until(&format!("at most {count} helpers are connected"), |present| {
            present <= count
        })
    }

    /// Makes every connected helper perform one action with at most one argument:
    /// `print TEXT`, `eprint TEXT`, `write-bytes N`, `touch FILE`, `listen PORT`, `kill-self N`,
    /// `exit N`.
    pub fn tell(&self, action: &str) {
        assert!(!action.contains('\n'), "one action per line; write a newline as \\n");
        let line = format!("{action}\n");
        for connection in self.helpers.lock().values() {
            // Writing to a helper that has just died fails, which is fine.
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
        assert!(
            !waited.timed_out(),
            "timed out after {PATIENCE:?}: {what}, connected are {pids:?}"
        );
        pids
    }
}

impl Drop for Anchor {
    fn drop(&mut self) {
        // A stopped helper does not see the socket close. As long as its connection is in the list,
        // its pid is not reused.
        for pid in self.pids() {
            if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
                // It may have ended meanwhile.
                _ = rustix::process::kill_process(pid, Signal::CONT);
            }
        }
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic in it has already been printed, and drop must not panic again.
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

    /// Accepts and removes helpers until the other end of `stopped` is closed.
    fn serve(&self, listener: &UnixListener, stopped: &UnixStream) {
        loop {
            // A copy, so that the lock is not held while this thread waits for an event.
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

    /// Adds a helper to the list before letting it continue, so that anything it causes happens
    /// after it is listed.
    fn welcome(&self, connection: UnixStream) {
        let connection = Arc::new(connection);
        self.lock().insert(peer_pid(&connection), Arc::clone(&connection));
        // It may already be dead; the next wait notices that.
        _ = (&*connection).write_all(WELCOME);
    }
}

struct AnchorEvents {
    stopped: bool,
    arrival: bool,
    /// For each helper, whether it is gone. Helpers send nothing, so any event is their end.
    gone: Vec<bool>,
}

fn wait<'a>(
    listener: &UnixListener,
    stopped: &UnixStream,
    helpers: impl Iterator<Item = &'a Arc<UnixStream>>,
) -> AnchorEvents {
    let mut polled =
        vec![PollFd::new(stopped, PollFlags::IN), PollFd::new(listener, PollFlags::IN)];
    polled.extend(helpers.map(|helper| PollFd::new(&**helper, PollFlags::IN)));
    while let Err(error) = rustix::event::poll(&mut polled, None) {
        assert_eq!(error, rustix::io::Errno::INTR, "poll fails only when interrupted");
    }
    let mut happened = polled.iter().map(|fd| !fd.revents().is_empty());
    AnchorEvents {
        stopped: happened.next().expect("the first descriptor"),
        arrival: happened.next().expect("the second descriptor"),
        gone: happened.collect(),
    }
}

/// The pid of the peer according to the kernel.
fn peer_pid(connection: &UnixStream) -> u32 {
    let credentials =
        rustix::net::sockopt::socket_peercred(connection).expect("a unix socket has a peer");
    credentials.pid.as_raw_nonzero().get().unsigned_abs()
}
