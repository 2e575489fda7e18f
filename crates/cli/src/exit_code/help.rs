//! The exit codes that a command can give, as its `--help` lists them.
//!
//! Each command says which and what they mean to it; the numbers are those that it returns.

use std::fmt;

use super::{NOT_FOUND, NOT_RUNNABLE, OWN_FAILURE, TIMED_OUT, USAGE};

/// An exit code, in the order of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Code {
    /// Whatever the command that was run has ended with.
    OfCommand,
    Is(u8),
    /// 128 and the number of a signal.
    OfSignal,
}

/// What a code means to a command.
pub(crate) type Row = (Code, &'static str);

pub(crate) const DONE: Row = (Code::Is(0), "it is done");
pub(crate) const SENSELESS: Row = (Code::Is(USAGE), "the call of lastbyte makes no sense");
/// Of a command that has settings besides its flags.
pub(crate) const UNUSABLE: Row =
    (Code::Is(USAGE), "the call of lastbyte makes no sense, or its settings cannot be used");
pub(crate) const OUT_OF_TIME: Row =
    (Code::Is(TIMED_OUT), "the command was stopped because its time was over");
pub(crate) const NO_SERVER: Row =
    (Code::Is(OWN_FAILURE), "no server is running, or it cannot do this");
/// Of a command that is about one process.
pub(crate) const NO_PROCESS: Row =
    (Code::Is(OWN_FAILURE), "no server is running, there is no such process, or it cannot do this");
pub(crate) const CANNOT_BE_RUN: Row =
    (Code::Is(NOT_RUNNABLE), "the program was found but cannot be run");
pub(crate) const NO_PROGRAM: Row = (Code::Is(NOT_FOUND), "the program was not found");
pub(crate) const NOT_WRITTEN: Row = (Code::Is(OWN_FAILURE), "what was asked for cannot be written");

/// The list of a command with these codes.
pub(crate) fn list<const COUNT: usize>(mut rows: [Row; COUNT]) -> String {
    rows.sort_unstable_by_key(|(code, _)| *code);
    let lines = rows.map(|(code, meaning)| format!("  {:7}{meaning}", code.to_string()));
    format!("Exit codes:\n{}", lines.join("\n"))
}

/// The list of a command that asks a server and has nothing to tell by its exit code.
pub(crate) fn of_asking() -> String {
    list([DONE, UNUSABLE, NO_SERVER])
}

/// The same of one that is about one process.
pub(crate) fn of_asking_about_one() -> String {
    list([DONE, UNUSABLE, NO_PROCESS])
}

/// The list of a command that writes something about itself.
pub(crate) fn of_writing() -> String {
    list([DONE, SENSELESS, NOT_WRITTEN])
}

impl fmt::Display for Code {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OfCommand => write!(out, "N"),
            Self::Is(code) => write!(out, "{code}"),
            Self::OfSignal => write!(out, "128+N"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_in_order_however_it_is_said() {
        let signal = (Code::OfSignal, "a signal");
        let text = list([signal, NO_PROGRAM, SENSELESS, (Code::OfCommand, "its own"), DONE]);
        let want = "Exit codes:\n  N      its own\n  0      it is done\n  \
                    2      the call of lastbyte makes no sense\n  \
                    127    the program was not found\n  128+N  a signal";
        assert_eq!(text, want);
    }
}
