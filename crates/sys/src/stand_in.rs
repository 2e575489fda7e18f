//! The stand-in: a process that shares this program's descriptor table and sleeps.
//!
//! When the program dies, everything it had open stays open in the stand-in. It then closes what it is
//! told to close, gives copies of what it is asked for, and goes when it is told to, or when nothing
//! can ask any more.
//!
//! It is a child of this program's parent, and so are the zombies of those that die. It uses neither
//! the heap nor locks: it may be cloned while other threads have them.

use std::ffi::c_void;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::time::Duration;

use rustix::io::Errno;

use crate::own_signals::change_mask;
use crate::packets;
use crate::pipe::retry;
use crate::raw::{check, clone, syscall};
use crate::untraceable::become_untraceable;

/// A stand-in of this program's descriptors.
#[derive(Debug)]
pub struct StandIn {
    pidfd: OwnedFd,
}

impl StandIn {
    /// Clones it. `socket` is where it is asked, and stays open for as long as this program lives: a
    /// stand-in that is made in the place of a dead one needs it too.
    pub fn start(socket: RawFd) -> io::Result<Self> {
        let mut pidfd: RawFd = -1;
        let flags = libc::CLONE_FILES | libc::CLONE_PARENT | libc::CLONE_PIDFD;
        let args = [flags.unsigned_abs() as usize, 0, ptr::from_mut(&mut pidfd) as usize];
        let entry: crate::raw::Entry = (enter, socket as usize as *mut c_void);
        // All signals stay blocked in the child: those of the terminal are for the program.
        let mask = change_mask(libc::SIG_SETMASK, u64::MAX);
        // SAFETY: without CLONE_VM the child has a copy of all memory, so this thread's stack is its
        // own to go on with; the place of the pidfd is live during the call.
        let answer = check(unsafe { clone(libc::SYS_clone, args, 0, entry) });
        change_mask(libc::SIG_SETMASK, mask);
        answer?;
        // SAFETY: the kernel made this descriptor for us in the call above, and nothing else has it.
        Ok(Self { pidfd: unsafe { OwnedFd::from_raw_fd(pidfd) } })
    }
}

impl AsFd for StandIn {
    /// Its pidfd: readable once it is dead.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

/// The most numbers in one question.
pub const MOST_NUMBERS: usize = 250;

/// What a stand-in is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question<'a> {
    /// To close everything from the first number up to the second, except these, which ascend. Only
    /// after the death of its program, which would miss them.
    Close { first: u32, last: u32, except: &'a [RawFd] },
    /// Copies of these.
    Give(&'a [RawFd]),
    /// To exit. There is no answer.
    Go,
}

/// What a stand-in says.
#[derive(Debug)]
pub struct Answer {
    /// Its own number.
    pub pid: i32,
    /// What was asked for, in the same order.
    pub given: Vec<Given>,
}

/// What became of a descriptor that was asked for.
#[derive(Debug)]
pub enum Given {
    Copy(OwnedFd),
    NotOpen,
    /// The table of the program that asks is full. The stand-in still has it.
    NoRoom,
}

/// A question as it is sent: its number, its kind, two limits, and numbers of descriptors.
const HEAD: usize = 5;
type Words = [u32; HEAD + MOST_NUMBERS];

const CLOSE: u32 = 1;
const GIVE: u32 = 2;
const GO: u32 = 3;

/// Asks a stand-in, and waits for its answer for at most this long. The question's number must differ
/// from that of every other question to it, also those of programs that died while they were asking.
/// `Ok(None)` if it is gone.
pub fn ask(
    socket: impl AsFd,
    number: u64,
    question: Question<'_>,
    patience: Duration,
) -> Result<Option<Answer>, Errno> {
    let (kind, limits, numbers) = match question {
        Question::Close { first, last, except } => (CLOSE, [first, last], except),
        Question::Give(numbers) => (GIVE, [0, 0], numbers),
        Question::Go => (GO, [0, 0], &[][..]),
    };
    if numbers.len() > MOST_NUMBERS {
        return Err(Errno::TOOBIG);
    }
    let head = [number as u32, (number >> 32) as u32, kind, limits[0], limits[1]];
    let words = head.into_iter().chain(numbers.iter().map(|number| number.unsigned_abs()));
    let bytes: Vec<u8> = words.flat_map(u32::to_ne_bytes).collect();
    match packets::send(&socket, &bytes, &[]) {
        Err(Errno::PIPE | Errno::CONNRESET) => return Ok(None),
        sent => sent?,
    }
    if kind == GO {
        return Ok(None);
    }
    loop {
        let mut bytes = [0; size_of::<Words>()];
        let Some((length, given)) = packets::receive(&socket, &mut bytes, patience)? else {
            return Ok(None);
        };
        let words: Vec<u32> = bytes[..length].chunks_exact(4).map(to_word).collect();
        // Another answer is to a program that died while it was asking: its copies are closed.
        if words.len() >= HEAD && words[..2] == head[..2] {
            return Ok(Some(answer(&words, given)));
        }
    }
}

fn answer(words: &[u32], given: Vec<OwnedFd>) -> Answer {
    let mut given = given.into_iter();
    let given = words[HEAD..].iter().map(|is_open| match *is_open {
        0 => Given::NotOpen,
        // The kernel leaves out those at the end.
        _ => given.next().map_or(Given::NoRoom, Given::Copy),
    });
    Answer { pid: words[2].cast_signed(), given: given.collect() }
}

fn to_word(bytes: &[u8]) -> u32 {
    bytes.try_into().map_or(0, u32::from_ne_bytes)
}

/// The stand-in's whole life.
///
/// # Safety
/// Must run in a process of its own; `socket` is the number of an open socket.
unsafe extern "C" fn enter(socket: *mut c_void) -> ! {
    let socket = socket as usize as RawFd;
    // A death of the parent is not its business, but its name is for people.
    _ = rustix::thread::set_name(c"lastbyte-stand");
    become_untraceable();
    let mut words: Words = [0; HEAD + MOST_NUMBERS];
    loop {
        let place = words.as_mut_ptr() as usize;
        let args = [socket as usize, place, size_of::<Words>()];
        // SAFETY: the buffer is live, writable and of this size.
        let length = retry(|| check(unsafe { syscall(libc::SYS_read, args) }));
        match length {
            Ok(length) if length / 4 >= HEAD => obey(socket, &mut words, length / 4),
            // Nothing can ask any more.
            Ok(_) | Err(_) => end(),
        }
    }
}

fn obey(socket: RawFd, words: &mut Words, length: usize) {
    let kind = words[2];
    // SAFETY: getpid takes no argument and accesses no memory.
    words[2] = unsafe { syscall(libc::SYS_getpid, []) } as u32;
    match kind {
        CLOSE => {
            close_except(socket, [words[3], words[4]], &words[HEAD..length]);
            answer_with(socket, words, HEAD, &[]);
        }
        GIVE => {
            let mut open = [0; MOST_NUMBERS];
            let mut count = 0;
            for word in &mut words[HEAD..length] {
                let is_open = is_open(*word);
                if is_open {
                    open[count] = word.cast_signed();
                    count += 1;
                }
                *word = is_open.into();
            }
            answer_with(socket, words, length, &open[..count]);
        }
        _ => end(),
    }
}

/// Closes a range of numbers, except the socket and these, which ascend.
fn close_except(socket: RawFd, [first, last]: [u32; 2], except: &[u32]) {
    let socket = socket.unsigned_abs();
    let mut at = first;
    let mut skip = |kept: u32| {
        if kept < at || kept > last {
            return;
        }
        if at < kept {
            close_range(at, kept - 1);
        }
        at = kept.saturating_add(1);
    };
    let mut seen_socket = false;
    for kept in except {
        if !seen_socket && socket < *kept {
            skip(socket);
            seen_socket = true;
        }
        skip(*kept);
    }
    if !seen_socket {
        skip(socket);
    }
    if at <= last {
        close_range(at, last);
    }
}

/// For a process that is a copy of this program: it owns no descriptor as a value.
pub(crate) fn close_range(first: u32, last: u32) {
    let args = [first as usize, last as usize, 0];
    // SAFETY: nothing in this process owns one of these: it is a copy that never returns to the code
    // that does, or shares the table of a program that is dead.
    if check(unsafe { syscall(libc::SYS_close_range, args) }).is_err() {
        for number in first..=last.min(1 << 20) {
            // SAFETY: as above.
            unsafe { syscall(libc::SYS_close, [number as usize]) };
        }
    }
}

fn is_open(number: u32) -> bool {
    // SAFETY: the call reads a flag of a number, which need not be open.
    check(unsafe { syscall(libc::SYS_fcntl, [number as usize, libc::F_GETFD as usize]) }).is_ok()
}

/// One that cannot be sent is as good as no answer: who asks waits only for so long.
fn answer_with(socket: RawFd, words: &Words, length: usize, numbers: &[RawFd]) {
    // SAFETY: the socket is open for as long as this process lives.
    let socket = unsafe { BorrowedFd::borrow_raw(socket) };
    let mut open = [socket; MOST_NUMBERS];
    for (place, number) in open.iter_mut().zip(numbers) {
        // SAFETY: it was just found open, and the program that could close it is dead.
        *place = unsafe { BorrowedFd::borrow_raw(*number) };
    }
    let mut bytes = [0; size_of::<Words>()];
    for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_ne_bytes());
    }
    _ = packets::send(socket, &bytes[..length * 4], &open[..numbers.len()]);
}

pub(crate) fn end() -> ! {
    loop {
        // SAFETY: this ends only this process.
        unsafe { syscall(libc::SYS_exit_group, [0]) };
    }
}

/// For the program: the number of a socket that it never closes.
pub fn leave_open(socket: OwnedFd) -> RawFd {
    use std::os::fd::IntoRawFd;
    debug_assert!(socket.as_raw_fd() > 2);
    socket.into_raw_fd()
}
