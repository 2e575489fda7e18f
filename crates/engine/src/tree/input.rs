//! Whether a process of a tree waits for input, by what the kernel says of its threads.
//!
//! Nothing is guessed from what a command prints. A process needs input if one of its threads is
//! blocked reading the command's pipe or terminal, and nothing that it works with runs. What we may
//! not look at makes the answer unknown, never a yes, with one exception: a terminal that hides a
//! line that is typed.

use std::io;
use std::os::fd::AsFd;

use lastbyte_sys::blocked::{self, Call, FileId, OpenFile, Thread};
use lastbyte_sys::procfs::Stat;
use lastbyte_sys::pty::{self, Typing};
use lastbyte_sys::{listening, pipe};

use super::calls::{Machine, WaitsFor};
use super::members::Tree;

/// The result of a look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputState {
    /// This process waits for input.
    Needed(InputReader),
    NotNeeded,
    /// This process may be waiting for input, but we may not look at it.
    Unknown {
        pid: i32,
        name: String,
    },
    /// The command has no input, or has exited.
    Never,
}

/// A process that waits for input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputReader {
    pub pid: i32,
    pub name: String,
    pub kind: InputKind,
    /// What is typed is not shown: it asks for a password.
    pub secret: bool,
}

/// Where the input of a command comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputKind {
    Terminal,
    Pipe,
}

/// The input of a command as its owner sees it at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InputEnd {
    file: FileId,
    /// Something was accepted, or typed, that the command has not read.
    pub(crate) has_unread: bool,
    source: Source,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Pipe,
    Terminal { foreground: Option<i32>, typing: Typing },
}

/// A process, and what it does with the input.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    pid: i32,
    name: String,
    group: i32,
    does: Does,
}

/// What a thread or process does. Of a process, the first of these that one of its threads does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Does {
    Run,
    ReadInput,
    /// We may not know, or cannot.
    Untold,
    WaitForOthers,
}

/// More threads than this are not looked at.
const MOST_THREADS: usize = 4096;

impl InputEnd {
    pub(crate) fn pipe(end: impl AsFd) -> io::Result<Self> {
        let has_unread = pipe::ready(&end)? > 0;
        Ok(Self { file: FileId::new(end)?, has_unread, source: Source::Pipe })
    }

    pub(crate) fn terminal(ours: impl AsFd, terminal: impl AsFd) -> io::Result<Self> {
        let source =
            Source::Terminal { foreground: pty::foreground(ours), typing: pty::typing(&terminal)? };
        let has_unread = pipe::ready(&terminal)? > 0;
        Ok(Self { file: FileId::new(terminal)?, has_unread, source })
    }

    /// Whether it is a terminal that gives its reader whole lines.
    pub(crate) fn takes_lines(&self) -> bool {
        match self.source {
            Source::Pipe => false,
            Source::Terminal { typing, .. } => typing != Typing::Keys,
        }
    }

    fn kind(&self) -> InputKind {
        match self.source {
            Source::Pipe => InputKind::Pipe,
            Source::Terminal { .. } => InputKind::Terminal,
        }
    }

    fn is_hidden(&self) -> bool {
        match self.source {
            Source::Pipe => false,
            Source::Terminal { typing, .. } => typing == Typing::HiddenLines,
        }
    }

    /// Whether the kernel lets a process of this group read it.
    fn is_open_to(&self, group: i32) -> bool {
        match self.source {
            Source::Pipe => true,
            Source::Terminal { foreground, .. } => foreground == Some(group),
        }
    }
}

impl Tree {
    pub(crate) async fn needs_input(&self, input: InputEnd) -> InputState {
        if input.has_unread {
            return InputState::NotNeeded;
        }
        let tree = self.clone();
        let look = self.scans.looks.run(move || tree.look_for_reader(&input)).await;
        look.and_then(Result::ok).unwrap_or_else(|| self.unknown())
    }

    fn look_for_reader(&self, input: &InputEnd) -> io::Result<InputState> {
        let Some(machine) = Machine::ours() else { return Ok(self.unknown()) };
        let look = Look { machine, input: *input, session: self.leader() };
        let mut left = MOST_THREADS;
        let members = self.members()?.into_iter().filter(|stat| input.is_open_to(stat.group));
        let seen: Vec<Seen> = members
            .map(|stat| {
                let does = look.process(&stat, &mut left);
                let Stat { pid, name, group, .. } = stat;
                Seen { pid, name, group, does }
            })
            .collect();
        Ok(judge(input, &seen).unwrap_or_else(|| self.unknown()))
    }

    fn unknown(&self) -> InputState {
        let pid = self.leader();
        InputState::Unknown { pid, name: lastbyte_sys::procfs::read_name(pid) }
    }
}

/// What follows from what was seen of the processes that may read. `None` if nobody was seen there,
/// although somebody must be.
fn judge(input: &InputEnd, seen: &[Seen]) -> Option<InputState> {
    let first = |does| seen.iter().find(move |seen| seen.does == does);
    let found = |seen: &Seen| {
        InputState::Needed(InputReader {
            pid: seen.pid,
            name: seen.name.clone(),
            kind: input.kind(),
            secret: input.is_hidden(),
        })
    };
    let (reader, untold) = (first(Does::ReadInput), first(Does::Untold));
    let together = reader.or(untold).map(|seen| seen.group);
    let is_busy = |seen: &Seen| seen.does == Does::Run && Some(seen.group) == together;
    Some(match (reader, untold) {
        _ if seen.iter().any(is_busy) => InputState::NotNeeded,
        (Some(reader), _) => found(reader),
        // A program that runs as another user, such as sudo, while it asks for a password.
        (None, Some(untold)) if input.is_hidden() => found(untold),
        (None, Some(Seen { pid, name, .. })) => {
            InputState::Unknown { pid: *pid, name: name.clone() }
        }
        (None, None) if seen.is_empty() && input.kind() == InputKind::Terminal => return None,
        (None, None) => InputState::NotNeeded,
    })
}

/// Reads what processes do.
struct Look {
    machine: Machine,
    input: InputEnd,
    /// Of the leader, which has the terminal as its own.
    session: i32,
}

impl Look {
    /// Of a process that may read. Takes from `left` as many threads as it has.
    fn process(&self, stat: &Stat, left: &mut usize) -> Does {
        match blocked::threads(stat.pid, *left) {
            Ok(Some(threads)) => {
                *left -= threads.len();
                let does = threads.iter().map(|thread| self.thread(stat, thread));
                does.min().unwrap_or(Does::WaitForOthers)
            }
            Ok(None) => Does::Untold,
            Err(_) if !stat.still_exists() => Does::WaitForOthers,
            Err(_) => Does::Untold,
        }
    }

    fn thread(&self, stat: &Stat, thread: &Thread) -> Does {
        match (thread.state, thread.call) {
            (b'S', Call::Refused) => Does::Untold,
            // Threads of the kernel that work for this process.
            (b'S', Call::Blocked { stack: 0, .. }) => Does::WaitForOthers,
            // The calls of a 32-bit program have other numbers.
            (b'S', Call::Blocked { stack, .. }) if stack <= u32::MAX.into() => Does::Untold,
            (b'S', Call::Blocked { number, arguments, .. }) => {
                let waits_for = self.machine.waits_for(number, arguments);
                self.blocked(stat, thread.tid, waits_for).unwrap_or(Does::Untold)
            }
            // It began to run between two looks.
            (b'S', Call::None) => Does::Run,
            (b'T' | b't' | b'Z' | b'X' | b'I', _) => Does::WaitForOthers,
            _ => Does::Run,
        }
    }

    fn blocked(&self, stat: &Stat, tid: i32, waits_for: WaitsFor) -> io::Result<Does> {
        let pid = stat.pid;
        let files = match waits_for {
            WaitsFor::Read(fd) => vec![fd],
            WaitsFor::Poll { address, count } => blocked::polled(pid, address, count)?,
            WaitsFor::Restarted { address, count } if blocked::sleeps_in_poll(pid, tid) => {
                blocked::polled(pid, address, count)?
            }
            WaitsFor::Restarted { .. } => return Ok(Does::WaitForOthers),
            WaitsFor::Select { address, count } => blocked::selected(pid, address, count)?,
            WaitsFor::Epoll(fd) => blocked::watched(pid, fd)?,
            WaitsFor::Ring => {
                let holds = self.includes_input(stat, &blocked::descriptors(pid)?);
                return Ok(if holds { Does::Untold } else { Does::WaitForOthers });
            }
            WaitsFor::Other => return Ok(Does::WaitForOthers),
        };
        let reads = self.includes_input(stat, &files) && !is_server(pid, &files);
        Ok(if reads { Does::ReadInput } else { Does::WaitForOthers })
    }

    fn includes_input(&self, stat: &Stat, files: &[i32]) -> bool {
        files.iter().any(|fd| match blocked::open_file(stat.pid, *fd) {
            Ok(OpenFile::File(file)) => file == self.input.file,
            Ok(OpenFile::OwnTerminal) => {
                self.input.kind() == InputKind::Terminal && stat.session == self.session
            }
            Err(_) => false,
        })
    }
}

/// Whether it waits for connections as well: then it has work without input, and only takes keys
/// beside it, as development servers do.
fn is_server(pid: i32, files: &[i32]) -> bool {
    if files.len() < 2 {
        return false;
    }
    let listening = listening::everywhere(pid);
    files.iter().any(|fd| match blocked::open_file(pid, *fd) {
        Ok(OpenFile::File(file)) => listening.contains(&file.inode),
        Ok(OpenFile::OwnTerminal) | Err(_) => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERMINAL: InputEnd = terminal(Typing::Lines);
    const HIDDEN: InputEnd = terminal(Typing::HiddenLines);
    const FILE: FileId = FileId { device: 1, inode: 2 };
    const PIPE: InputEnd = InputEnd { file: FILE, has_unread: false, source: Source::Pipe };

    const fn terminal(typing: Typing) -> InputEnd {
        let source = Source::Terminal { foreground: Some(7), typing };
        InputEnd { file: FILE, has_unread: false, source }
    }

    /// The pids of these processes are 10, 11, …, and their group is the second number.
    fn judged(input: &InputEnd, seen: &[(Does, i32)]) -> Option<InputState> {
        let seen: Vec<Seen> = (10..)
            .zip(seen)
            .map(|(pid, &(does, group))| Seen { pid, name: "name".into(), group, does })
            .collect();
        judge(input, &seen)
    }

    fn needed(pid: i32, kind: InputKind, secret: bool) -> Option<InputState> {
        Some(InputState::Needed(InputReader { pid, name: "name".into(), kind, secret }))
    }

    fn unknown(pid: i32) -> Option<InputState> {
        Some(InputState::Unknown { pid, name: "name".into() })
    }

    #[test]
    fn a_process_that_reads_while_nothing_beside_it_runs_needs_input() {
        use Does::{ReadInput, Run, Untold, WaitForOthers};
        let no = || Some(InputState::NotNeeded);
        let tty = |pid| needed(pid, InputKind::Terminal, false);
        assert_eq!(judged(&TERMINAL, &[(ReadInput, 7)]), tty(10));
        assert_eq!(judged(&TERMINAL, &[(WaitForOthers, 7), (ReadInput, 7)]), tty(11));
        assert_eq!(judged(&TERMINAL, &[(Untold, 7), (ReadInput, 7)]), tty(11));
        assert_eq!(judged(&TERMINAL, &[(Run, 7), (ReadInput, 7)]), no());
        assert_eq!(judged(&TERMINAL, &[(WaitForOthers, 7)]), no());
        assert_eq!(judged(&TERMINAL, &[(Run, 7)]), no());
        assert_eq!(judged(&HIDDEN, &[(ReadInput, 7)]), needed(10, InputKind::Terminal, true));
        let pipe = |pid| needed(pid, InputKind::Pipe, false);
        assert_eq!(judged(&PIPE, &[(ReadInput, 3)]), pipe(10));
        assert_eq!(judged(&PIPE, &[(Run, 4), (ReadInput, 3)]), pipe(11), "another group");
        assert_eq!(judged(&PIPE, &[(Run, 3), (ReadInput, 3)]), no());
        assert_eq!(judged(&PIPE, &[]), no());
    }

    #[test]
    fn what_cannot_be_looked_at_is_unknown_unless_the_terminal_hides_what_is_typed() {
        use Does::{Run, Untold, WaitForOthers};
        assert_eq!(judged(&TERMINAL, &[(Untold, 7), (WaitForOthers, 7)]), unknown(10));
        assert_eq!(judged(&PIPE, &[(WaitForOthers, 7), (Untold, 7)]), unknown(11));
        assert_eq!(judged(&HIDDEN, &[(Untold, 7)]), needed(10, InputKind::Terminal, true));
        assert_eq!(judged(&HIDDEN, &[(Untold, 7), (Run, 7)]), Some(InputState::NotNeeded));
        assert_eq!(judged(&HIDDEN, &[(WaitForOthers, 7)]), Some(InputState::NotNeeded));
        assert_eq!(judged(&TERMINAL, &[]), None, "its foreground group is invisible");
    }

    #[test]
    fn only_the_foreground_group_may_read_a_terminal() {
        assert!(TERMINAL.is_open_to(7) && !TERMINAL.is_open_to(8));
        assert!(PIPE.is_open_to(7) && PIPE.is_open_to(8));
    }
}
