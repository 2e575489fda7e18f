//! What `/proc` says of processes.

use std::fs;
use std::path::PathBuf;

pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(super) state: char,
    /// It was cloned and has not executed a program since (`PF_FORKNOEXEC`).
    pub(super) was_cloned_only: bool,
}

const PF_FORKNOEXEC: u64 = 0x40;

impl Process {
    pub(super) fn read(pid: u32) -> Option<Self> {
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        // The name before it is in parentheses and may contain any byte.
        let after_name = stat.iter().rposition(|byte| *byte == b')')? + 1;
        let rest = str::from_utf8(&stat[after_name..]).ok()?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let flags: u64 = fields.get(6)?.parse().ok()?;
        Some(Self {
            pid,
            state: fields.first()?.chars().next()?,
            was_cloned_only: flags & PF_FORKNOEXEC != 0,
        })
    }

    pub(crate) fn is_zombie(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }

    /// Its command line, for people.
    pub(super) fn command(&self) -> String {
        let line = fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default();
        String::from_utf8_lossy(&line).replace('\0', " ").chars().take(120).collect()
    }
}

pub(super) fn all() -> impl Iterator<Item = Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| Process::read(entry.file_name().to_str()?.parse().ok()?))
}

/// Asks the kernel for the children of each thread, which is faster than to look at all processes.
pub(crate) fn children_of(pid: u32) -> Vec<Process> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let listed =
        threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let pids: Vec<u32> = listed
        .flat_map(|line| line.split(' ').filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect();
    pids.into_iter().filter_map(Process::read).collect()
}

pub(super) fn is_alive(pid: u32) -> bool {
    Process::read(pid).is_some_and(|process| !process.is_zombie())
}

pub(super) fn environment_has(pid: u32, wanted: impl Fn(&str) -> bool) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|entry| str::from_utf8(entry).is_ok_and(&wanted))
}

/// What its descriptors lead to.
pub(super) fn open_files(pid: u32) -> Vec<PathBuf> {
    let links = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    links.filter_map(|link| fs::read_link(link.path()).ok()).collect()
}
