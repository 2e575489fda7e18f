//! What `/proc` knows of descriptors and processes.

use std::fs;
use std::path::PathBuf;

/// The numbers of the caller's open descriptors, in order.
///
/// True at one instant only if no other thread opens or closes any meanwhile.
pub fn open_fds() -> Vec<i32> {
    let mut numbers: Vec<i32> = names_in("/proc/self/fd");
    // The listing has a descriptor of its own, which is closed by here.
    numbers.retain(|number| fs::symlink_metadata(format!("/proc/self/fd/{number}")).is_ok());
    numbers.sort_unstable();
    numbers
}

/// What the caller's open descriptors lead to, as `/proc` shows it. As true as [`open_fds`].
pub fn open_targets() -> Vec<PathBuf> {
    let links = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    links.filter_map(|link| fs::read_link(link.path()).ok()).collect()
}

/// The direct children of `pid`, zombies included, in order.
pub fn children_of(pid: u32) -> Vec<u32> {
    let mut children: Vec<u32> = names_in("/proc");
    children.retain(|child| Stat::of(*child).is_some_and(|stat| stat.parent == pid));
    children.sort_unstable();
    children
}

/// Whether `pid` is a process that can still do something; a zombie cannot.
pub fn is_alive(pid: u32) -> bool {
    Stat::of(pid).is_some_and(|stat| !matches!(stat.state, 'Z' | 'X'))
}

/// Whether `pid` was stopped by a signal and has not gone on.
pub fn is_stopped(pid: u32) -> bool {
    Stat::of(pid).is_some_and(|stat| stat.state == 'T')
}

/// The entries of a folder whose names are numbers.
fn names_in<Number: std::str::FromStr>(folder: &str) -> Vec<Number> {
    let entries = fs::read_dir(folder).expect("/proc is mounted");
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

struct Stat {
    state: char,
    parent: u32,
}

impl Stat {
    fn of(pid: u32) -> Option<Self> {
        // The name comes second, in brackets, and may itself have brackets, spaces and any byte.
        let bytes = fs::read(format!("/proc/{pid}/stat")).ok()?;
        let after_name = bytes.iter().rposition(|byte| *byte == b')')? + 1;
        let rest = std::str::from_utf8(&bytes[after_name..]).ok()?;
        let mut fields = rest.split_whitespace();
        let state = fields.next()?.chars().next()?;
        let parent = fields.next()?.parse().ok()?;
        Some(Self { state, parent })
    }
}

#[cfg(test)]
mod tests {
    use super::{is_alive, open_fds};

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
}
