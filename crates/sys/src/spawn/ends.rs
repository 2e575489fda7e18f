//! The pipes or the pty between a command and this program.
//!
//! They are created in the program's own descriptor table, before there is a child. If the table is
//! full, the start fails, not the running command. The child's ends go to a spawner's private table
//! with the request, so no other child can inherit them.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::{Errno, fcntl_dupfd_cloexec};

use super::request::{Failure, Output, Stdin, Step};
use crate::pipe::{nonblocking_pipe, set_blocking, set_nonblocking};
use crate::pty::{self, WindowSize};

/// Our ends, which are non-blocking.
#[derive(Debug)]
pub struct OurEnds {
    pub stdin: Option<OwnedFd>,
    pub output: OutputEnds,
}

/// Our read ends, by kind of output.
#[derive(Debug)]
pub enum OutputEnds {
    Merged(OwnedFd),
    Split {
        stdout: OwnedFd,
        stderr: OwnedFd,
    },
    /// Our end of the pty, for both directions, and the terminal itself. While any process has the
    /// terminal open, our end does not read as ended, whatever the command does with its own.
    Pty {
        ours: OwnedFd,
        terminal: OwnedFd,
    },
}

/// The child's ends, in the order standard output, error and input. The last two are present only
/// if they are separate descriptors.
#[derive(Debug)]
pub struct ChildEnds(Vec<OwnedFd>);

/// Creates the ends for a child with these streams. All are close-on-exec.
pub fn open_ends(stdin: Stdin, output: Output) -> Result<(OurEnds, ChildEnds), Failure> {
    match output {
        Output::Pty(size) => open_terminal(size).map_err(Step::Pty.failed()),
        Output::Merged | Output::Split => open_pipes(stdin, output).map_err(Step::Pipes.failed()),
    }
}

fn open_pipes(stdin: Stdin, output: Output) -> Result<(OurEnds, ChildEnds), Errno> {
    let (stdout, childs) = output_pipe()?;
    let mut child = vec![childs];
    let output = match output {
        Output::Split => {
            let (stderr, childs) = output_pipe()?;
            child.push(childs);
            OutputEnds::Split { stdout, stderr }
        }
        Output::Merged | Output::Pty(_) => OutputEnds::Merged(stdout),
    };
    let stdin = match stdin {
        Stdin::Null => None,
        Stdin::Pipe => {
            let (childs, ours) = nonblocking_pipe()?;
            set_blocking(&childs)?;
            child.push(childs);
            Some(ours)
        }
    };
    Ok((OurEnds { stdin, output }, ChildEnds(child)))
}

fn output_pipe() -> Result<(OwnedFd, OwnedFd), Errno> {
    let (ours, childs) = nonblocking_pipe()?;
    set_blocking(&childs)?;
    Ok((ours, childs))
}

fn open_terminal(size: WindowSize) -> Result<(OurEnds, ChildEnds), Errno> {
    let (ours, terminal) = pty::open(size)?;
    set_nonblocking(&ours)?;
    let childs = fcntl_dupfd_cloexec(&terminal, 3)?;
    let output = OutputEnds::Pty { ours, terminal };
    Ok((OurEnds { stdin: None, output }, ChildEnds(vec![childs])))
}

impl ChildEnds {
    pub(super) fn borrowed(&self) -> Vec<BorrowedFd<'_>> {
        self.0.iter().map(AsFd::as_fd).collect()
    }

    /// The ends received from a socket, for a child with these streams. `None` if one is missing.
    pub(super) fn received(ends: Vec<OwnedFd>, stdin: Stdin, output: Output) -> Option<Self> {
        let own_stdin = stdin == Stdin::Pipe && !matches!(output, Output::Pty(_));
        let own_stderr = output == Output::Split;
        let count = 1 + usize::from(own_stderr) + usize::from(own_stdin);
        (ends.len() == count).then_some(Self(ends))
    }

    pub(super) fn streams<'a>(
        &'a self,
        (stdin, output): (Stdin, Output),
        null: &'a OwnedFd,
    ) -> [BorrowedFd<'a>; 3] {
        let stdout = self.0[0].as_fd();
        let last = self.0[self.0.len() - 1].as_fd();
        let stderr = if output == Output::Split { self.0[1].as_fd() } else { stdout };
        match stdin {
            Stdin::Null => [null.as_fd(), stdout, stderr],
            // A pty serves as all three streams.
            Stdin::Pipe => [last, stdout, stderr],
        }
    }
}
