//! A leader that we started and have not reaped. It can be signalled safely, and is reaped last.
//!
//! The kernel reuses neither the pid nor the group id of an unreaped zombie, so a signal cannot hit
//! an unrelated process. [`Child::reap`] consumes the child, and with it the right to signal by
//! number:
//!
//! ```compile_fail
//! fn signal_after_reaping(child: lastbyte_sys::Child) {
//!     let reaped = child.reap();
//!     child.signal_group(lastbyte_sys::Signal::KILL); // the child is gone: does not compile
//! }
//! ```

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::pipe::retry;
use crate::raw::{check, number, syscall};
use crate::registry::{Place, Slot};
use crate::{Signal, leaders};

/// An unreaped child that leads a session and a process group of its own.
///
/// Dropping it unreaped (a panic, a runtime shutdown) kills its group; a dedicated thread then
/// reaps it.
///
/// After a take-over the leader is a child of the keeper, which writes its status into its slot and
/// does not reap it before that is released.
#[derive(Debug)]
pub struct Child {
    pid: Pid,
    /// `None` only once reaping has begun.
    pidfd: Option<Arc<OwnedFd>>,
    parent: Parent,
    /// Where it is entered for a keeper.
    slot: Option<Arc<Slot>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Parent {
    Us,
    Keeper,
}

/// A leader that an earlier worker has started. Dropping it does nothing to it.
#[derive(Debug)]
pub struct Found {
    pid: Pid,
    pidfd: OwnedFd,
}

impl Found {
    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }
}

/// The child's pidfd, for waiting until it exits: readable from then on. It stays open after the
/// child is reaped, and can only be polled.
#[derive(Debug)]
pub struct ExitWatch {
    pidfd: Arc<OwnedFd>,
}

/// How a leader ended, as reported by the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Exited(i32),
    Signalled { signal: Signal, core_dumped: bool },
}

impl Status {
    /// From the number that wait(2) gives. `None` for a signal that is none.
    pub(crate) fn from_wait(code: i32) -> Option<Self> {
        if libc::WIFEXITED(code) {
            return Some(Self::Exited(libc::WEXITSTATUS(code)));
        }
        let signal = Signal::from_number(libc::WTERMSIG(code)).ok()?;
        Some(Self::Signalled { signal, core_dumped: libc::WCOREDUMP(code) })
    }

    pub(crate) fn to_wait(self) -> i32 {
        const CORE_DUMPED: i32 = 0x80;
        match self {
            Self::Exited(code) => (code & 0xff) << 8,
            Self::Signalled { signal, core_dumped } => {
                signal.number() | if core_dumped { CORE_DUMPED } else { 0 }
            }
        }
    }
}

/// Something else reaped the child, and the kernel no longer knows its status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("exit status lost: another part of this program reaped the child")]
pub struct Lost;

/// Resource usage as counted by `waitid`: the child and the children it waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    pub user: Duration,
    pub system: Duration,
    /// Peak resident size in bytes. A child made with `CLONE_VM` starts with its spawner's peak, so
    /// this is accurate only if it exceeds that.
    pub peak_memory: u64,
}

/// How a leader has exited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exited {
    pub status: Status,
    /// `None` if the status came from the pidfd after someone else reaped the child: that reports
    /// no usage.
    pub usage: Option<Usage>,
}

impl From<(Status, Usage)> for Exited {
    fn from((status, usage): (Status, Usage)) -> Self {
        Self { status, usage: Some(usage) }
    }
}

impl Child {
    pub(crate) fn new(pid: Pid, pidfd: OwnedFd) -> Self {
        Self { pid, pidfd: Some(Arc::new(pidfd)), parent: Parent::Us, slot: None }
    }

    /// The leader that an earlier worker entered here: now a child of the keeper, and not reaped.
    /// `None` if it was never born, or is gone.
    pub fn find(place: Place) -> Result<Option<Found>, Errno> {
        let Some(pid) = place.pid().and_then(Pid::from_raw) else { return Ok(None) };
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(pidfd) => Ok(Some(Found { pid, pidfd })),
            Err(Errno::SRCH) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// That leader as this worker's own.
    pub fn taken_over(Found { pid, pidfd }: Found, slot: Arc<Slot>) -> Self {
        leaders::taken_over(pid);
        let (pidfd, parent) = (Some(Arc::new(pidfd)), Parent::Keeper);
        Self { pid, pidfd, parent, slot: Some(slot) }
    }

    /// It is entered in this slot until it is reaped.
    pub fn entered_in(mut self, slot: Option<Arc<Slot>>) -> Self {
        self.slot = slot;
        self
    }

    /// Whether its parent is the keeper, which tells of its exit a moment after its pidfd.
    pub fn is_taken_over(&self) -> bool {
        self.parent == Parent::Keeper
    }

    pub fn exit_watch(&self) -> ExitWatch {
        ExitWatch { pidfd: Arc::clone(self.pidfd()) }
    }

    /// Its pid, which is also its group and session id.
    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// The status and usage if the leader has exited. It stays a zombie.
    pub fn peek(&self) -> Result<Option<Exited>, Lost> {
        match self.parent {
            Parent::Us => match wait(self.as_fd(), PEEK) {
                Ok(answer) => Ok(answer.map(Exited::from)),
                Err(_) => taken_by_others(self.as_fd()).map(Some),
            },
            Parent::Keeper => match self.told() {
                Some(exited) => Ok(Some(exited)),
                // It lives, or the keeper is about to tell.
                None if self.is_unreaped() => Ok(None),
                None => taken_by_others(self.as_fd()).map(Some),
            },
        }
    }

    /// What the keeper has told.
    fn told(&self) -> Option<Exited> {
        let exit = self.slot.as_ref()?.place().exit()?;
        Some(Exited { status: exit.status, usage: Some(exit.usage) })
    }

    /// When the keeper saw its exit, in nanoseconds of unix time and of the monotonic clock. `None`
    /// for a child of our own.
    pub fn exit_told_at(&self) -> Option<[u64; 2]> {
        let slot = self.slot.as_ref().filter(|_| self.is_taken_over())?;
        slot.place().exit().map(|exit| exit.at)
    }

    /// Whether its pid is still its own.
    fn is_unreaped(&self) -> bool {
        match self.parent {
            Parent::Us => wait(self.as_fd(), PEEK).is_ok(),
            Parent::Keeper => exists(self.as_fd()),
        }
    }

    /// Signals every member of the group. `false` if the group is empty, or if something else
    /// reaped the leader and its number may have been reused.
    ///
    /// The kernel counts the unreaped leader as a member, so `true` does not mean that a live
    /// process got the signal.
    pub fn signal_group(&self, signal: Signal) -> bool {
        // The pid is no longer ours if another part of the program waits for children it did not
        // start, or ignores SIGCHLD.
        // SAFETY: kill(2) reads its two arguments and no memory.
        self.is_unreaped() && unsafe { libc::kill(-self.pid(), signal.number()) == 0 }
    }

    fn pidfd(&self) -> &Arc<OwnedFd> {
        self.pidfd.as_ref().expect("taken only by reap and drop")
    }

    /// Waits for the exit if necessary, takes the status and removes the zombie, or lets the keeper
    /// do so. The slot says first that its number will be free.
    pub fn reap(mut self) -> Result<Exited, Lost> {
        let pidfd = self.pidfd.take().expect("taken only here and in drop");
        match self.parent {
            Parent::Us => reap(self.pid, pidfd.as_fd(), self.slot.as_ref()),
            Parent::Keeper => {
                let exited = self.told().map_or_else(|| taken_by_others(pidfd.as_fd()), Ok);
                self.release();
                exited
            }
        }
    }

    /// The keeper may reap it.
    fn release(&self) {
        self.slot.iter().for_each(|slot| slot.place().release());
        leaders::reaped(self.pid);
    }
}

impl AsFd for Child {
    /// The pidfd: readable once the leader has exited.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd().as_fd()
    }
}

impl AsRawFd for ExitWatch {
    fn as_raw_fd(&self) -> RawFd {
        self.pidfd.as_raw_fd()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.pidfd.is_some() {
            self.signal_group(Signal::KILL);
        }
        let Some(pidfd) = self.pidfd.take() else { return };
        let (pid, slot) = (self.pid, self.slot.clone());
        match self.parent {
            // A killed leader exits at once unless it hangs in the kernel, so a thread does the
            // waiting. If no thread can be created, the zombie stays until this program ends.
            Parent::Us => {
                let reap = move || reap(pid, pidfd.as_fd(), slot.as_ref());
                _ = std::thread::Builder::new().spawn(reap);
            }
            Parent::Keeper => self.release(),
        }
    }
}

/// Signals the group of a leader that the keeper has not reaped, so that its number is its own.
pub fn signal_unreaped_group(pid: i32, signal: Signal) {
    // SAFETY: kill(2) reads its two arguments and no memory. A group that is gone is no error.
    unsafe { libc::kill(-pid, signal.number()) };
}

/// Kills and reaps a child without a pidfd. Its pid is ours until it is reaped.
pub(crate) fn abandon(pid: Pid) {
    _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
    let wait = move || {
        // When this returns the child is reaped, by us or by someone else.
        _ = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty());
        leaders::reaped(pid);
    };
    // As in `drop`: without a thread, the zombie stays until this program ends.
    _ = std::thread::Builder::new().spawn(wait);
}

fn reap(pid: Pid, pidfd: BorrowedFd<'_>, slot: Option<&Arc<Slot>>) -> Result<Exited, Lost> {
    let place = slot.map(|slot| slot.place());
    place.into_iter().for_each(Place::release);
    let answer = wait(pidfd, libc::WEXITED);
    leaders::reaped(pid);
    place.into_iter().for_each(Place::reaped_by_worker);
    match answer {
        Ok(Some(exited)) => Ok(exited.into()),
        Ok(None) | Err(_) => taken_by_others(pidfd),
    }
}

fn taken_by_others(pidfd: BorrowedFd<'_>) -> Result<Exited, Lost> {
    status_from_pidfd(pidfd).map(|status| Exited { status, usage: None })
}

/// Whether the process is there, zombies included.
fn exists(pidfd: BorrowedFd<'_>) -> bool {
    // SAFETY: the descriptor is borrowed for the call; signal 0 is never delivered.
    check(unsafe { syscall(libc::SYS_pidfd_send_signal, [number(pidfd), 0, 0, 0]) }).is_ok()
}

/// Whether it has exited, without reaping it.
pub(crate) const PEEK: i32 = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;

/// `waitid` on a pidfd with resource usage.
pub(crate) fn wait(pidfd: BorrowedFd<'_>, options: i32) -> Result<Option<(Status, Usage)>, Errno> {
    wait_for((libc::P_PIDFD as usize, number(pidfd)), options)
}

/// `waitid` on one child with resource usage. No safe wrapper offers this.
pub(crate) fn wait_for(
    (kind, id): (usize, usize),
    options: i32,
) -> Result<Option<(Status, Usage)>, Errno> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    let (info_at, usage_at) = (info.as_mut_ptr() as usize, usage.as_mut_ptr() as usize);
    let args = [kind, id, info_at, options.unsigned_abs() as usize, usage_at];
    // SAFETY: both pointers are to live, writable values of the types the call fills; a child is
    // named by a number, which need not be one.
    retry(|| check(unsafe { syscall(libc::SYS_waitid, args) }))?;
    // SAFETY: all-zero is a valid siginfo_t, and the call has filled in its fields.
    let info = unsafe { info.assume_init() };
    // SAFETY: all-zero is a valid rusage, and the call has filled it in.
    let usage = unsafe { usage.assume_init() };
    Ok(to_status(&info).map(|status| (status, Usage::from(&usage))))
}

fn to_status(info: &libc::siginfo_t) -> Option<Status> {
    // SAFETY: waitid fills the SIGCHLD members. They are zero if it had nothing to report.
    let pid = unsafe { info.si_pid() };
    if pid == 0 {
        return None;
    }
    // SAFETY: as above; si_status is part of the SIGCHLD members.
    let status = unsafe { info.si_status() };
    Some(match info.si_code {
        libc::CLD_EXITED => Status::Exited(status),
        code => Status::Signalled {
            signal: Signal::from_number(status).unwrap_or(Signal::KILL),
            core_dumped: code == libc::CLD_DUMPED,
        },
    })
}

impl From<&libc::rusage> for Usage {
    fn from(usage: &libc::rusage) -> Self {
        let time = |t: libc::timeval| {
            Duration::new(t.tv_sec.unsigned_abs(), t.tv_usec.unsigned_abs() as u32 * 1000)
        };
        Self {
            user: time(usage.ru_utime),
            system: time(usage.ru_stime),
            peak_memory: usage.ru_maxrss.unsigned_abs() * 1024,
        }
    }
}

/// The exit status of a process that something else reaped, from its pidfd (Linux 6.15 and later).
pub(crate) fn status_from_pidfd(pidfd: BorrowedFd<'_>) -> Result<Status, Lost> {
    const PIDFD_INFO_EXIT: u64 = 1 << 3;
    // `_IOWR(0xFF, 11, struct pidfd_info)` for the first published size, 64 bytes.
    const PIDFD_GET_INFO: u64 = 0xC040_FF0B;
    // The mask and cgroup id are 8 bytes each, then eleven 4-byte ids. The exit code is the last
    // word.
    let mut info = [0u32; 16];
    info[0] = PIDFD_INFO_EXIT as u32;
    // SAFETY: the request number encodes the size of the buffer, 64 bytes, which is live and
    // writable; the descriptor is borrowed for the call.
    let answer = unsafe { libc::ioctl(pidfd.as_raw_fd(), PIDFD_GET_INFO as _, info.as_mut_ptr()) };
    if answer != 0 || u64::from(info[0]) & PIDFD_INFO_EXIT == 0 {
        return Err(Lost);
    }
    Status::from_wait(info[15].cast_signed()).ok_or(Lost)
}

/// `pidfd_send_signal`, for any signal number.
pub(crate) fn send(pidfd: BorrowedFd<'_>, signal: Signal) -> Result<(), Errno> {
    let args = [number(pidfd), signal.number().unsigned_abs() as usize, 0, 0];
    // SAFETY: the descriptor is borrowed for the call; a null siginfo means the same as kill(2).
    check(unsafe { syscall(libc::SYS_pidfd_send_signal, args) }).map(drop)
}

/// Whether `bytes` exceeds this program's own peak memory so far.
pub fn exceeds_own_peak(bytes: u64) -> bool {
    /// The last known peak. A peak only grows, so smaller values need no system call.
    static EARLIER: AtomicU64 = AtomicU64::new(0);
    if bytes <= EARLIER.load(Ordering::Relaxed) {
        return false;
    }
    let peak = own_usage().peak_memory;
    EARLIER.store(peak, Ordering::Relaxed);
    bytes > peak
}

/// The resource usage of this program so far.
pub(crate) fn own_usage() -> Usage {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a live, writable rusage.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) };
    // SAFETY: all-zero is a valid rusage, and the call fills it in.
    (&unsafe { usage.assume_init() }).into()
}
