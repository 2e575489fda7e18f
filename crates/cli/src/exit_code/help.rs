//! The exit codes that a command can give, as its `--help` lists them.
//!
//! Each command says which and what they mean to it; the numbers are those that it returns.

use super::{
    INCOMPLETE, NONE_SELECTED, NOT_FOUND, NOT_MET, NOT_RUNNABLE, OWN_FAILURE, TIMED_OUT, UNKNOWN,
    USAGE,
};

/// An exit code, in the order of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Code {
    /// Whatever the command that was run has ended with.
    Command,
    Is(u8),
    /// 128 and the number of a signal.
    Signal,
}

impl Code {
    pub(crate) const OK: Self = Self::Is(0);
    pub(crate) const NOT_MET: Self = Self::Is(NOT_MET);
    pub(crate) const USAGE: Self = Self::Is(USAGE);
    pub(crate) const INCOMPLETE: Self = Self::Is(INCOMPLETE);
    pub(crate) const TIMED_OUT: Self = Self::Is(TIMED_OUT);
    pub(crate) const FAILURE: Self = Self::Is(OWN_FAILURE);
}

/// What a code means to a command.
pub(crate) type Row = (Code, &'static str);

pub(crate) const SUCCESS: Row = (Code::OK, "success");
pub(crate) const INVALID_ARGS: Row = (Code::USAGE, "invalid arguments");
/// Of a command that has settings besides its flags.
pub(crate) const INVALID_ARGS_OR_SETTINGS: Row = (Code::USAGE, "invalid arguments or settings");
pub(crate) const COMMAND_TIMED_OUT: Row =
    (Code::TIMED_OUT, "the command timed out and was stopped");
pub(crate) const START_UNKNOWN: Row = (
    Code::Is(UNKNOWN),
    "the connection to the server broke: whether the command was started is unknown",
);
pub(crate) const NO_SERVER: Row =
    (Code::FAILURE, "no server is running, or it refused the request");
/// Of a command that is about a process, or about several: then it is so for one of them.
pub(crate) const NO_PROCESS: Row =
    (Code::FAILURE, "no server is running, no such process, or the server refused the request");
/// Of a command that is about several processes.
pub(crate) const NO_MATCH: Row = (Code::Is(NONE_SELECTED), "no process matches the selection");
pub(crate) const NOT_EXECUTABLE: Row =
    (Code::Is(NOT_RUNNABLE), "the program was found but cannot be executed");
pub(crate) const PROGRAM_NOT_FOUND: Row = (Code::Is(NOT_FOUND), "the program was not found");
pub(crate) const NOT_WRITTEN: Row = (Code::FAILURE, "cannot write the output");

/// The list of a command with these codes.
pub(crate) fn list<const COUNT: usize>(mut rows: [Row; COUNT]) -> String {
    rows.sort_unstable_by_key(|(code, _)| *code);
    let lines = rows.map(|(code, meaning)| match code {
        Code::Command => format!("  N      {meaning}"),
        Code::Is(code) => format!("  {code:<7}{meaning}"),
        Code::Signal => format!("  128+N  {meaning}"),
    });
    format!("Exit codes:\n{}", lines.join("\n"))
}

/// The list of a command that is about one process and has nothing to tell by its exit code.
pub(crate) fn process_query_codes() -> String {
    list([SUCCESS, INVALID_ARGS_OR_SETTINGS, NO_PROCESS])
}

/// The list of a command that looks at several processes and has nothing to tell by its exit code.
pub(crate) fn select_codes() -> String {
    list([SUCCESS, INVALID_ARGS_OR_SETTINGS, NO_MATCH, NO_PROCESS])
}

/// The list of a command that writes something about itself.
pub(crate) fn generator_codes() -> String {
    list([SUCCESS, INVALID_ARGS, NOT_WRITTEN])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_in_order_however_it_is_said() {
        let signal = (Code::Signal, "a signal");
        let text =
            list([signal, PROGRAM_NOT_FOUND, INVALID_ARGS, (Code::Command, "its own"), SUCCESS]);
        let want = "Exit codes:\n  N      its own\n  0      success\n  \
                    2      invalid arguments\n  \
                    127    the program was not found\n  128+N  a signal";
        assert_eq!(text, want);
    }
}
