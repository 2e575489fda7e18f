//! Starts a worker: a child that runs this program again, or another, with a socket to its keeper.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{fcntl_dupfd_cloexec, ioctl_fionbio, retry_on_intr};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::Signal;
use crate::child::send;
use crate::core_dumps;
use crate::descriptor_limit::SoftAndHard;

/// A started worker.
#[derive(Debug)]
pub struct Worker {
    pub pid: i32,
    pidfd: OwnedFd,
}

/// What a worker runs.
#[derive(Debug, Clone)]
pub struct Program {
    /// `/proc/self/exe` is this program, also after its file was replaced.
    pub path: OsString,
    /// With its name.
    pub argv: Vec<OsString>,
    pub env: Vec<(OsString, OsString)>,
}

/// Where a worker finds its socket.
const CONTROL: RawFd = 3;

impl Worker {
    /// Starts it in this session and process group, with these standard streams and no other
    /// descriptor than the socket, whose number is in `variable`. It starts with an empty mask, and
    /// with this `oom_score_adj` if it is not to have ours.
    #[expect(clippy::disallowed_methods, reason = "this is sys: it closes every descriptor itself")]
    pub fn start(
        program: &Program,
        variable: &str,
        control: BorrowedFd<'_>,
        oom_score: Option<i32>,
    ) -> io::Result<Self> {
        let mut command = Command::new(&program.path);
        let mut argv = program.argv.iter();
        if let Some(name) = argv.next() {
            command.arg0(name);
        }
        command.args(argv).env_clear().envs(program.env.iter().map(|(name, value)| (name, value)));
        command.env(variable, CONTROL.to_string());
        let control = control.as_raw_fd();
        let score = oom_score.map(|score| score.to_string());
        // The worker forbids its own core dumps, and then knows what its commands are to have.
        let core_limits = core_dumps::for_children();
        let prepare = move || {
            score.as_deref().into_iter().for_each(set_oom_score);
            core_limits.into_iter().for_each(set_core_limits);
            place_control(control)
        };
        // SAFETY: the closure makes system calls and uses only memory that was made before.
        unsafe { command.pre_exec(prepare) };
        let mut child = command.spawn()?;
        let pid = child.id().cast_signed();
        // It is not reaped before `Worker` says that it died, so the number is its own.
        let number = Pid::from_raw(pid).ok_or(io::ErrorKind::NotFound)?;
        match pidfd_open(number, PidfdFlags::empty()) {
            Ok(pidfd) => Ok(Self { pid, pidfd }),
            Err(errno) => {
                // What we cannot watch must not run.
                child.kill()?;
                child.wait()?;
                Err(errno.into())
            }
        }
    }

    /// `false` if it is dead.
    pub fn signal(&self, signal: Signal) -> bool {
        send(self.pidfd.as_fd(), signal).is_ok()
    }

    /// The file that it executes, whatever has that file's name by now. Its number is not
    /// `CONTROL`, so `/proc/self/fd` has it in a child that is about to become a worker.
    pub fn executable(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let file = open(format!("/proc/{}/exe", self.pid), flags, Mode::empty())?;
        Ok(fcntl_dupfd_cloexec(file, CONTROL + 1)?)
    }
}

impl AsFd for Worker {
    /// Its pidfd: readable once it is dead.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

/// Without this the worker is as well protected as its keeper, and so are its commands.
fn set_oom_score(score: &str) {
    // SAFETY: the path is live and ends with a NUL.
    let file = unsafe { libc::open(c"/proc/self/oom_score_adj".as_ptr(), libc::O_WRONLY) };
    if file >= 0 {
        // SAFETY: the text is live and has this length.
        unsafe { libc::write(file, score.as_ptr().cast(), score.len()) };
        // SAFETY: it was opened above, and nothing else has its number.
        unsafe { libc::close(file) };
    }
}

fn set_core_limits([soft, hard]: SoftAndHard) {
    let limits = libc::rlimit64 { rlim_cur: soft, rlim_max: hard };
    // It cannot fail: the hard limit is as it was.
    // SAFETY: it reads the limits, which are live.
    unsafe { libc::setrlimit64(libc::RLIMIT_CORE, &raw const limits) };
}

/// Puts the socket where the worker looks for it; everything else is closed on exec.
fn place_control(control: RawFd) -> io::Result<()> {
    let check = |answer: libc::c_int| {
        if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
    };
    // Not dup2, which would leave close-on-exec set if the numbers are the same.
    // SAFETY: numbers only.
    let copy = check(unsafe { libc::fcntl(control, libc::F_DUPFD_CLOEXEC, CONTROL + 1) })?;
    // SAFETY: numbers only; what had this number is not used by this child any more.
    check(unsafe { libc::dup2(copy, CONTROL) })?;
    let [first, last] = [CONTROL.unsigned_abs() + 1, u32::MAX];
    // A kernel or filter that refuses it leaves them to their own flag: everything here has it.
    // SAFETY: numbers only.
    unsafe { libc::syscall(libc::SYS_close_range, first, last, libc::CLOSE_RANGE_CLOEXEC) };
    Ok(())
}

/// Runs a program with one argument, no input and no standard error, and returns how it ended and
/// the first 4 KiB of what it printed. `None` if it took longer than this and was killed.
#[expect(clippy::disallowed_methods, reason = "this is sys, and all else is closed on exec")]
pub fn try_out(program: &Path, argument: &str, patience: Duration) -> io::Result<Option<Output>> {
    let mut command = Command::new(program);
    command.arg(argument).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    let pid = Pid::from_raw(child.id().cast_signed()).ok_or(io::ErrorKind::NotFound)?;
    let in_time = pidfd_open(pid, PidfdFlags::empty()).and_then(|pidfd| {
        let mut polled = [PollFd::new(&pidfd, PollFlags::IN)];
        let patience = patience.try_into().ok();
        Ok(retry_on_intr(|| poll(&mut polled, patience.as_ref()))? > 0)
    });
    // Fails if it has ended.
    _ = child.kill();
    let status = child.wait()?;
    let mut stdout = Vec::new();
    if let Some(pipe) = child.stdout.take() {
        // Something that it left behind may hold the other end.
        ioctl_fionbio(&pipe, true)?;
        match pipe.take(4096).read_to_end(&mut stdout) {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            Ok(_) | Err(_) => {}
        }
    }
    Ok(in_time?.then_some(Output { status, stdout, stderr: Vec::new() }))
}

/// Ends this process as a kill would: nothing is dropped, flushed or closed, so that everything
/// stays in the registry and with the stand-in.
pub fn leave_at_once(code: u8) -> ! {
    // SAFETY: it takes a number, runs no code of this program and does not return.
    unsafe { libc::_exit(code.into()) }
}

/// For the worker, before it starts a thread: its socket to the keeper, if it has a keeper. The
/// variable is removed, so that no child takes itself for a worker.
pub fn take_control(variable: &str) -> io::Result<Option<OwnedFd>> {
    let Some(value) = std::env::var_os(variable) else { return Ok(None) };
    let refused = |what: &str| io::Error::new(io::ErrorKind::InvalidInput, what);
    if std::fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(refused("the program has several threads"));
    }
    // SAFETY: no other thread exists that could read the environment.
    unsafe { std::env::remove_var(variable) };
    if value != CONTROL.to_string().as_str() {
        return Err(refused("the variable is not from a keeper"));
    }
    // SAFETY: the number is not -1; one that is not open is refused below by the kernel.
    let control = unsafe { BorrowedFd::borrow_raw(CONTROL) };
    rustix::net::sockopt::socket_type(control)?;
    rustix::io::fcntl_setfd(control, rustix::io::FdFlags::CLOEXEC)?;
    // SAFETY: it is open, and the variable says that it was opened for us; this program has opened
    // nothing yet, and with the variable gone no second call gets here.
    Ok(Some(unsafe { OwnedFd::from_raw_fd(CONTROL) }))
}
