//! Calls that make no sense, answered with the line that does.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::net::SocketAddr;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::{exit_code, tell};

/// The commands that take a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Run,
    Start,
}

impl Verb {
    const ALL: [Self; 2] = [Self::Run, Self::Start];
}

impl fmt::Display for Verb {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Run => "run",
            Self::Start => "start",
        })
    }
}

/// What is wrong with a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Error {
    #[error("no command is given\n\n{}", Example(*.0))]
    NoCommand(Verb),
    #[error("the command is empty\n\n{}", Example(*.0))]
    EmptyText(Verb),
    #[error("the program's name is empty\n\n{}", Example(*.0))]
    EmptyProgram(Verb),
    #[error(
        "there is a shell text and a program after `--`, but only one of them can be run\n\n{}",
        Example(*.0)
    )]
    TwoCommands(Verb),
    #[error("a shell text is one argument, not {count}\n\n{fix}", count = words.len(), fix = Fix(*verb, words))]
    NotQuoted { verb: Verb, words: Vec<OsString> },
    #[error("{option} is not an option of `lastbyte {verb}`\n\n{fix}", fix = Fix(*verb, words))]
    ForeignOption { verb: Verb, option: String, words: Vec<OsString> },
    #[error("--env takes NAME=VALUE, not {given:?}; to remove a variable use --unset NAME")]
    EnvNeedsValue { given: OsString },
    #[error("--unset takes the name of a variable, not {given:?}")]
    UnsetNeedsName { given: OsString },
    #[error(
        "{option} says more about a workspace, so it is for --sandbox workspace-write alone; add that"
    )]
    NeedsWorkspace { option: &'static str },
    #[error(
        "--network gives a sandboxed command the network, so it is for --sandbox read-only or \
         workspace-write; without a sandbox a command has it anyway"
    )]
    NetworkNeedsSandbox,
    #[error("the id is empty; `lastbyte ps` lists those there are, and `last` is the newest")]
    EmptyId,
    #[error("{given:?} names no directory")]
    NoDirectory { given: OsString },
    #[error("{what} is sent to the server as text, and this is not UTF-8: {given:?}")]
    NotText { what: &'static str, given: OsString },
    #[error(
        "--no-auth lets anybody run commands who can connect, so it is for loopback addresses \
         alone, and {address} is none; without it a token is asked for"
    )]
    OpenToOthers { address: SocketAddr },
    #[error(
        "a token is for a server on a port, and none is named; add --server URL, or leave \
         --token-file out: a socket file asks for none"
    )]
    TokenForNobody,
    #[error(
        "--watch draws on a terminal, and standard output is none; `lastbyte events` writes a line \
         for each change"
    )]
    WatchNeedsTerminal,
}

struct Example(Verb);

impl fmt::Display for Example {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(verb) = self;
        writeln!(out, "Give it as one shell text, or as a program and its arguments after `--`:")?;
        writeln!(out, "  lastbyte {verb} 'make test | tail -5'")?;
        write!(out, "  lastbyte {verb} -- make test")
    }
}

/// Says what clap has found wrong, or shows the help that was asked for; returns the exit code.
pub(crate) fn explain(error: &clap::Error, program: &clap::Command) -> u8 {
    let words = words_to_run(program);
    match (error.kind(), words) {
        (ErrorKind::UnknownArgument, Some((verb, words))) if suggestion(error).is_none() => {
            let option = text_of(error, ContextKind::InvalidArg).unwrap_or_default();
            tell::line(Error::ForeignOption { verb, option, words });
        }
        // `lastbyte run df -h` must not do nothing and call it a success.
        (ErrorKind::DisplayHelp, Some((verb, words))) => {
            let option = words.last().map(|word| word.display().to_string()).unwrap_or_default();
            tell::line(Error::ForeignOption { verb, option, words });
        }
        (ErrorKind::DisplayHelp | ErrorKind::DisplayVersion, _) => {
            // Help that nobody reads is no error.
            _ = error.print();
            return 0;
        }
        (ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand, _) => {
            _ = error.print(); // as above, on stderr
        }
        _ => {
            let text = error.render().to_string();
            tell::line(text.strip_prefix("error: ").unwrap_or(&text).trim_end());
        }
    }
    exit_code::USAGE
}

/// The words of a call that runs a command, from the first that is neither an option nor an
/// option's value.
fn words_to_run(program: &clap::Command) -> Option<(Verb, Vec<OsString>)> {
    let mut words = std::env::args_os().skip(1);
    let name = words.next()?;
    let verb = Verb::ALL.into_iter().find(|verb| name == verb.to_string().as_str())?;
    let command = program.find_subcommand(name)?;
    let takes_value = |word: &OsStr| {
        let long = word.to_str().and_then(|word| word.strip_prefix("--"));
        command.get_arguments().any(|arg| arg.get_long() == long && arg.get_action().takes_values())
    };
    let mut words = words.peekable();
    while let Some(word) = words.next_if(|word| word.as_encoded_bytes().starts_with(b"-")) {
        if word == "--" {
            return None;
        }
        if takes_value(&word) {
            words.next();
        }
    }
    words.peek()?;
    Some((verb, words.collect()))
}

fn suggestion(error: &clap::Error) -> Option<String> {
    text_of(error, ContextKind::SuggestedArg)
}

fn text_of(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    }
}

/// The two ways to run these words.
struct Fix<'a>(Verb, &'a [OsString]);

impl fmt::Display for Fix<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(verb, words) = self;
        let words: Vec<String> = words.iter().map(|word| quoted(&word.to_string_lossy())).collect();
        let words = words.join(" ");
        writeln!(out, "Quote the command, or put it after `--`:")?;
        writeln!(out, "  lastbyte {verb} {}", in_quotes(&words))?;
        write!(out, "  lastbyte {verb} -- {words}")
    }
}

/// As a shell takes it for one word.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:=,+@%^".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => in_quotes(word),
    }
}

fn in_quotes(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_needs_it() {
        for (word, want) in
            [("ls", "ls"), ("", "''"), ("a b", "'a b'"), ("it's", r"'it'\''s'"), ("$x", "'$x'")]
        {
            assert_eq!(quoted(word), want);
        }
    }
}
