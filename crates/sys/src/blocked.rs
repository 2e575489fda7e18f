//! What the threads of another process are blocked in, and on which files, according to `/proc`.
//!
//! All of it needs the permission to trace the process, but nothing is traced or stopped. It is the
//! state of an instant: a thread that is blocked here may run a moment later.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};

use rustix::fs::{fstat, makedev};

use crate::procfs::{is_gone, read_stat_of};

/// A thread, and what it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thread {
    pub tid: i32,
    /// As in [`crate::procfs::Stat`].
    pub state: u8,
    pub call: Call,
}

/// The system call that a thread is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// Blocked in the call with this number, of the machine or of its 32-bit predecessor.
    Blocked { number: u64, arguments: [u64; 6], stack: u64 },
    /// It runs, or is blocked outside of a call.
    None,
    /// We may not know.
    Refused,
}

/// Which file it is: the same for every descriptor of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileId {
    pub device: u64,
    pub inode: u64,
}

/// A file that a process has open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenFile {
    /// `/dev/tty`: the controlling terminal of the process that opened it.
    OwnTerminal,
    File(FileId),
}

/// Linux allows no more descriptors than this in a set, and few programs have more to poll.
const MOST_POLLED: u64 = 1024;

/// Each of these conditions means that the thread would read: `POLLIN` and `POLLRDNORM`, which
/// epoll numbers alike.
const TO_READ: u32 = 0x41;

/// The threads of a process, at most this many; `None` if it has more.
pub fn threads(pid: i32, most: usize) -> io::Result<Option<Vec<Thread>>> {
    let mut threads = Vec::new();
    for entry in fs::read_dir(format!("/proc/{pid}/task"))? {
        let folder = entry?.path();
        if threads.len() == most {
            return Ok(None);
        }
        match read_stat_of(&folder) {
            Ok(stat) => {
                threads.push(Thread { tid: stat.pid, state: stat.state, call: call(&folder)? })
            }
            Err(error) if is_gone(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Some(threads))
}

fn call(folder: &std::path::Path) -> io::Result<Call> {
    match fs::read_to_string(folder.join("syscall")) {
        Ok(text) => Ok(parse_call(&text)),
        Err(error) if is_gone(&error) && !folder.exists() => Ok(Call::None),
        // A kernel without this file does not tell either.
        Err(_) => Ok(Call::Refused),
    }
}

/// `running`, `-1 SP PC`, or the number, six arguments, SP and PC.
fn parse_call(text: &str) -> Call {
    let mut words = text.split_ascii_whitespace();
    let Some(number) = words.next().and_then(|word| word.parse().ok()) else { return Call::None };
    let rest: Vec<u64> = words.filter_map(hex).collect();
    match rest[..] {
        [a, b, c, d, e, f, stack, _] => {
            Call::Blocked { number, arguments: [a, b, c, d, e, f], stack }
        }
        _ => Call::None,
    }
}

fn hex(word: &str) -> Option<u64> {
    u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()
}

impl FileId {
    pub fn new(file: impl AsFd) -> io::Result<Self> {
        let stat = fstat(file)?;
        Ok(Self { device: stat.st_dev, inode: stat.st_ino })
    }
}

/// Whether a thread sleeps in the kernel's function of poll. `false` if the kernel does not tell.
pub fn sleeps_in_poll(pid: i32, tid: i32) -> bool {
    let function = fs::read_to_string(format!("/proc/{pid}/task/{tid}/wchan"));
    function.is_ok_and(|function| function.contains("poll"))
}

/// What a process has open as this descriptor.
pub fn open_file(pid: i32, fd: i32) -> io::Result<OpenFile> {
    let facts = fs::metadata(format!("/proc/{pid}/fd/{fd}"))?;
    // The number of `/dev/tty`, on every Linux.
    if facts.rdev() == makedev(5, 0) {
        return Ok(OpenFile::OwnTerminal);
    }
    Ok(OpenFile::File(FileId { device: facts.dev(), inode: facts.ino() }))
}

/// The descriptors that a process has open.
pub fn descriptors(pid: i32) -> io::Result<Vec<i32>> {
    let names = fs::read_dir(format!("/proc/{pid}/fd"))?.flatten().map(|entry| entry.file_name());
    Ok(names.filter_map(|name| name.to_str()?.parse().ok()).collect())
}

/// The descriptors that a call of poll waits to read, given its array.
pub fn polled(pid: i32, address: u64, count: u64) -> io::Result<Vec<i32>> {
    let bytes = memory(pid, address, 8 * count.min(MOST_POLLED))?;
    let entries = bytes.as_chunks::<8>().0.iter();
    Ok(entries
        .filter_map(|&[a, b, c, d, low, high, ..]| {
            let (fd, events) = (i32::from_ne_bytes([a, b, c, d]), u16::from_ne_bytes([low, high]));
            (fd >= 0 && u32::from(events) & TO_READ != 0).then_some(fd)
        })
        .collect())
}

/// The descriptors in a set of select, which is a row of bits.
pub fn selected(pid: i32, address: u64, count: u64) -> io::Result<Vec<i32>> {
    if address == 0 {
        return Ok(vec![]);
    }
    let count = count.min(MOST_POLLED);
    let bytes = memory(pid, address, count.div_ceil(64) * 8)?;
    let words: Vec<u64> =
        bytes.as_chunks::<8>().0.iter().map(|bytes| u64::from_ne_bytes(*bytes)).collect();
    let is_set = |fd: &u64| words[(fd / 64) as usize] >> (fd % 64) & 1 == 1;
    Ok((0..count).filter(is_set).filter_map(|fd| fd.try_into().ok()).collect())
}

/// The descriptors that an epoll waits to read.
pub fn watched(pid: i32, epoll: i32) -> io::Result<Vec<i32>> {
    let text = fs::read_to_string(format!("/proc/{pid}/fdinfo/{epoll}"))?;
    Ok(text.lines().filter_map(parse_watched).collect())
}

/// `tfd:        0 events:       19 data: …`, with the events in hexadecimal.
fn parse_watched(line: &str) -> Option<i32> {
    let mut words = line.strip_prefix("tfd:")?.split_ascii_whitespace();
    let fd = words.next()?.parse().ok()?;
    let events = words.nth(1).and_then(|word| u32::from_str_radix(word, 16).ok())?;
    (events & TO_READ != 0).then_some(fd)
}

fn memory(pid: i32, address: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length as usize];
    File::open(format!("/proc/{pid}/mem"))?.read_exact_at(&mut bytes, address)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_its_number_and_six_arguments() {
        let want = Call::Blocked { number: 0, arguments: [3, 0x10, 1, 0, 0, 0xff], stack: 0x7ffd };
        assert_eq!(parse_call("0 0x3 0x10 0x1 0x0 0x0 0xff 0x7ffd 0x7f\n"), want);
        for text in ["running\n", "-1 0x7ffd 0x7f\n", "", "0 0x3\n", "x 0x1"] {
            assert_eq!(parse_call(text), Call::None, "{text:?}");
        }
    }

    #[test]
    fn an_epoll_waits_to_read_what_it_watches_for_input() {
        let check = |line: &str, want: Option<i32>| assert_eq!(parse_watched(line), want, "{line}");
        check("tfd:        0 events:       19 data: 0  pos:0 ino:3 sdev:1c", Some(0));
        check("tfd:       11 events: 8000001d data: b", Some(11));
        // To write, and once its one event has come.
        check("tfd:        1 events:        4 data: 1", None);
        check("tfd:        0 events: 40000000 data: 0", None);
        check("flags:\t02", None);
        check("tfd: x", None);
    }

    #[test]
    fn a_poll_of_this_process_is_read_from_its_memory() {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let polled_here = [[3_i32, 1], [-1, 1], [4, 4], [5, 0x41 | 0x7fff_0000]];
        let address = polled_here.as_ptr() as u64;
        assert_eq!(polled(own, address, 4).expect("memory"), [3, 5]);
        let set: [u64; 2] = [0b101, 1 << 63];
        let address = set.as_ptr() as u64;
        assert_eq!(selected(own, address, 128).expect("memory"), [0, 2, 127]);
        assert_eq!(selected(own, address, 3).expect("memory"), [0, 2]);
        assert_eq!(selected(own, 0, 3).expect("nothing"), []);
        assert!(polled(own, 8, 1).is_err(), "no memory is there");
    }

    #[test]
    fn a_file_is_the_same_by_whichever_descriptor() {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let (read, write) = crate::pipe::pipe().expect("a pipe");
        let id = FileId::new(&write).expect("facts");
        let fd = std::os::fd::AsRawFd::as_raw_fd(&read);
        assert_eq!(open_file(own, fd).expect("open"), OpenFile::File(id));
        assert!(descriptors(own).expect("visible").contains(&fd));
    }
}
