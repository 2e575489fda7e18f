//! What `/proc` says about descriptors, processes and their signals.

use std::fs;
use std::path::PathBuf;

/// The open descriptors of this process, sorted.
///
/// Accurate only if no other thread opens or closes descriptors meanwhile.
pub fn open_fds() -> Vec<i32> {
    let mut numbers: Vec<i32> = names_in("/proc/self/fd");
    // The listing itself used a descriptor, which is closed by now.
    numbers.retain(|number| fs::symlink_metadata(format!("/proc/self/fd/{number}")).is_ok());
    numbers.sort_unstable();
    numbers
}

/// The targets of this process's open descriptors. As accurate as [`open_fds`].
pub fn open_targets() -> Vec<PathBuf> {
    let links = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    links.filter_map(|link| fs::read_link(link.path()).ok()).collect()
}

/// The direct children of `pid`, zombies included, sorted.
pub fn children_of(pid: u32) -> Vec<u32> {
    let mut children: Vec<u32> = names_in("/proc");
    children.retain(|child| ProcStat::read(*child).is_some_and(|stat| stat.parent == pid));
    children.sort_unstable();
    children
}

/// Whether `pid` is a process and not a zombie.
pub fn is_alive(pid: u32) -> bool {
    ProcStat::read(pid).is_some_and(|stat| !matches!(stat.state, 'Z' | 'X'))
}

/// Whether `pid` is stopped by a signal.
pub fn is_stopped(pid: u32) -> bool {
    ProcStat::read(pid).is_some_and(|stat| stat.state == 'T')
}

/// The names in a folder that are numbers.
fn names_in<Number: std::str::FromStr>(folder: &str) -> Vec<Number> {
    let entries = fs::read_dir(folder).expect("/proc is mounted");
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// The fields used of `/proc/PID/stat`.
struct ProcStat {
    state: char,
    parent: u32,
}

impl ProcStat {
    fn read(pid: u32) -> Option<Self> {
        // The second field is the name in parentheses, which may contain any byte.
        let bytes = fs::read(format!("/proc/{pid}/stat")).ok()?;
        let after_name = bytes.iter().rposition(|byte| *byte == b')')? + 1;
        let rest = std::str::from_utf8(&bytes[after_name..]).ok()?;
        let mut fields = rest.split_whitespace();
        let state = fields.next()?.chars().next()?;
        let parent = fields.next()?.parse().ok()?;
        Some(Self { state, parent })
    }
}

/// Which signals a process blocks, ignores and catches, as sorted numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SignalSets {
    pub blocked: Vec<u32>,
    pub ignored: Vec<u32>,
    pub caught: Vec<u32>,
}

impl SignalSets {
    /// Parses the text of `/proc/PID/status`, for instance the output of `cat /proc/self/status`.
    ///
    /// A Rust program ignores SIGPIPE and catches SIGSEGV and SIGBUS before `main`, so only a program
    /// in another language shows exactly what it inherited.
    pub fn from_status(status: &str) -> Self {
        let set = |name: &str| {
            status.lines().find_map(|line| line.strip_prefix(name)).map(numbers).unwrap_or_default()
        };
        Self { blocked: set("SigBlk:"), ignored: set("SigIgn:"), caught: set("SigCgt:") }
    }
}

fn numbers(mask: &str) -> Vec<u32> {
    let mask = u64::from_str_radix(mask.trim(), 16).unwrap_or_default();
    (1..=64).filter(|signal| mask >> (signal - 1) & 1 == 1).collect()
}

#[cfg(test)]
mod tests {
    use super::{SignalSets, is_alive, open_fds};

    #[test]
    fn an_open_file_is_counted_until_it_is_closed() {
        let before = open_fds();
        let file = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(open_fds().len(), before.len() + 1);
        drop(file);
        assert_eq!(open_fds(), before);
    }

    #[test]
    fn this_process_is_alive_and_an_impossible_one_is_not() {
        assert!(is_alive(std::process::id()));
        assert!(!is_alive(u32::MAX));
    }

    #[test]
    fn a_mask_becomes_signal_numbers() {
        let status = "Name:\tx\nSigBlk:\t8000000000004000\nSigIgn:\t0000000000001003\n";
        let want = SignalSets { blocked: vec![15, 64], ignored: vec![1, 2, 13], caught: vec![] };
        assert_eq!(SignalSets::from_status(status), want);
    }
}
