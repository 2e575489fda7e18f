//! Facts from `/proc` about processes: ancestry, open pipes, liveness.
//!
//! A pid read here may belong to another process a moment later. To signal, use a [`Member`]: a
//! pidfd that is opened first and verified afterwards.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, fstat};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::Signal;
use crate::child::send;

/// The fields of `/proc/PID/stat` that are used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    pub pid: i32,
    /// The first 15 bytes of the program's name, lossily decoded.
    pub name: String,
    pub state: u8,
    pub parent: i32,
    pub group: i32,
    pub session: i32,
    /// The kernel's flags of its main thread.
    pub flags: u64,
    /// In clock ticks since boot. Together with the pid this identifies a process for ever.
    pub start_time: u64,
    /// The number of threads; at most one for a zombie.
    pub threads: u64,
}

/// A process that can be signalled without the risk of hitting a later process with its pid.
#[derive(Debug)]
pub struct Member {
    pub pid: i32,
    /// As in [`Stat`]; empty if it was not read.
    pub name: String,
    pidfd: OwnedFd,
}

impl Stat {
    /// Neither a zombie nor dead. A main thread that exits before the others also shows as a
    /// zombie, but its process is alive.
    pub fn alive(&self) -> bool {
        !matches!(self.state, b'Z' | b'X' | b'x') || self.threads > 1
    }

    /// Whether this very process, not another with the same pid, still exists, as a zombie or
    /// alive.
    pub fn still_exists(&self) -> bool {
        read_stat(self.pid).is_ok_and(|now| now.start_time == self.start_time)
    }
}

impl Member {
    /// Opens the process that `stat` describes; `None` if it is gone.
    pub fn hold(stat: &Stat) -> Option<Self> {
        let member = Self::open(stat.pid)?.named(&stat.name);
        // Opened first, verified second: so the descriptor refers to the process with this start
        // time.
        stat.still_exists().then_some(member)
    }

    /// Opens whichever process has this pid. The caller must verify afterwards that it is the
    /// intended one.
    pub fn open(pid: i32) -> Option<Self> {
        let pidfd = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
        Some(Self { pid, name: String::new(), pidfd })
    }

    #[must_use]
    pub fn named(self, name: &str) -> Self {
        Self { name: name.to_owned(), ..self }
    }

    /// Signals this process and no other. `false` if it is gone or we may not signal it.
    pub fn signal(&self, signal: Signal) -> bool {
        send(self.pidfd.as_fd(), signal).is_ok()
    }
}

impl AsRawFd for Member {
    /// The pidfd: readable once the process has exited.
    fn as_raw_fd(&self) -> RawFd {
        self.pidfd.as_raw_fd()
    }
}

/// Every process. One that exits meanwhile is left out. Any other failure fails the whole call, so
/// that no process is taken for gone just because it could not be read.
pub fn all() -> io::Result<Vec<Stat>> {
    let mut all = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        match read_stat(pid) {
            Err(error) if is_gone(&error) => {}
            stat => all.push(stat?),
        }
    }
    Ok(all)
}

/// The current time in the unit of [`Stat::start_time`].
pub fn now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let ticks = rustix::param::clock_ticks_per_second();
    let part = now.tv_nsec.unsigned_abs() * ticks / 1_000_000_000;
    now.tv_sec.unsigned_abs() * ticks + part
}

/// The stat of one process.
pub fn read_stat(pid: i32) -> io::Result<Stat> {
    read_stat_of(Path::new(&format!("/proc/{pid}")))
}

/// The stat in this folder, which is that of a process or of a thread.
pub(crate) fn read_stat_of(folder: &Path) -> io::Result<Stat> {
    // One call gives at least the first 22 fields; no other is parsed.
    let mut text = [0; 1024];
    let length = fs::File::open(folder.join("stat"))?.read(&mut text)?;
    parse_stat(&text[..length]).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
}

/// The name of this process; empty if it is gone.
pub fn read_name(pid: i32) -> String {
    read_stat(pid).map(|stat| stat.name).unwrap_or_default()
}

/// The value of this variable in the environment the process was started with. `None` if the
/// process is gone or we may not read it.
pub fn initial_env(pid: i32, name: &str) -> io::Result<Option<Vec<u8>>> {
    let environ = read_if_visible(pid, "environ")?;
    let value =
        |entry: &[u8]| Some(entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?.to_vec());
    Ok(environ.split(|byte| *byte == 0).find_map(value))
}

/// A file of this process; empty if the process is gone or we may not read it.
pub(crate) fn read_if_visible(pid: i32, file: &str) -> io::Result<Vec<u8>> {
    match fs::read(format!("/proc/{pid}/{file}")) {
        Err(error) if is_gone(&error) || error.kind() == io::ErrorKind::PermissionDenied => {
            Ok(Vec::new())
        }
        answer => answer,
    }
}

/// The words after the name that begins a line, as in `/proc/PID/status` and `/proc/PID/limits`.
pub(crate) fn words<'a>(text: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_default().split_ascii_whitespace()
}

/// The pids in a list of the kernel, one word each.
pub(crate) fn pids(list: &str) -> impl Iterator<Item = i32> {
    list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok())
}

pub(crate) fn is_gone(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOENT | Errno::SRCH))
}

/// Whether the process has one of these files open, named as by [`link_target`].
pub fn holds_any(pid: i32, files: &[PathBuf]) -> bool {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    entries
        .flatten()
        .any(|entry| fs::read_link(entry.path()).is_ok_and(|target| files.contains(&target)))
}

/// How `/proc/PID/fd` shows the other end of this descriptor: `pipe:[…]` for a pipe, the terminal's
/// path for a pty.
pub fn link_target(ours: impl AsFd) -> Option<PathBuf> {
    let stat = fstat(&ours).ok()?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Fifo => Some(format!("pipe:[{}]", stat.st_ino).into()),
        _ => {
            let name = rustix::pty::ptsname(ours, Vec::new()).ok()?;
            Some(OsStr::from_bytes(name.as_bytes()).into())
        }
    }
}

/// The name is in parentheses and may itself contain spaces and parentheses. The last parenthesis
/// ends it.
fn parse_stat(text: &[u8]) -> Option<Stat> {
    let open = text.iter().position(|byte| *byte == b'(')?;
    let close = text.iter().rposition(|byte| *byte == b')')?;
    let pid = std::str::from_utf8(text.get(..open)?).ok()?.trim().parse().ok()?;
    let name = String::from_utf8_lossy(text.get(open + 1..close)?).into_owned();
    let rest = std::str::from_utf8(text.get(close + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    let session = fields.next()?.parse().ok()?;
    // Fields 9, 20 and 22, counted from 1.
    let flags = fields.nth(2)?.parse().ok()?;
    let threads = fields.nth(10)?.parse().ok()?;
    let start_time = fields.nth(1)?.parse().ok()?;
    Some(Stat { pid, name, state, parent, group, session, flags, start_time, threads })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_spaces_and_parentheses_is_read_whole() {
        let text = b"42 (a) b (c) S 7 8 9 0 -1 1 2 3 4 5 6 7 8 9 10 11 12 13 1234 99\n";
        let stat = parse_stat(text).expect("a well-formed line");
        let want = Stat {
            pid: 42,
            name: "a) b (c".into(),
            state: b'S',
            parent: 7,
            group: 8,
            session: 9,
            flags: 1,
            start_time: 1234,
            threads: 12,
        };
        assert_eq!(stat, want);
    }

    #[test]
    fn a_zombie_lives_as_long_as_another_of_its_threads_does() {
        let check = |state: &str, threads: u64, want: bool| {
            let text =
                format!("42 (a) {state} 7 8 9 0 -1 1 2 3 4 5 6 7 8 9 10 11 {threads} 0 1234 99\n");
            assert_eq!(parse_stat(text.as_bytes()).unwrap().alive(), want, "{text}");
        };
        check("S", 1, true);
        check("Z", 1, false);
        check("Z", 0, false);
        check("Z", 2, true);
    }

    #[test]
    fn a_cut_line_is_no_process() {
        for text in ["", "42", "42 (a", "42 (a)", "42 (a) S 1 2", "x (a) S 1 2 3"] {
            assert_eq!(parse_stat(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn this_process_is_listed_and_alive() {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let stat = all().expect("/proc is there").into_iter().find(|stat| stat.pid == own);
        assert!(stat.expect("listed").alive());
    }

    #[test]
    fn a_number_that_is_another_process_by_now_is_not_taken_hold_of() {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let stat = read_stat(own).unwrap();
        assert!(Member::hold(&stat).is_some());
        let earlier = Stat { start_time: stat.start_time - 1, ..stat };
        assert!(Member::hold(&earlier).is_none());
    }
}
