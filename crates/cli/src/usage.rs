//! Calls that make no sense, answered with the line that does.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::net::SocketAddr;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::{exit_code, tell};

/// What is wrong with a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Error {
    #[error("no command is given\n\n{EXAMPLE}")]
    NoCommand,
    #[error("the command is empty\n\n{EXAMPLE}")]
    EmptyText,
    #[error("the program's name is empty\n\n{EXAMPLE}")]
    EmptyProgram,
    #[error(
        "there is a shell text and a program after `--`, but only one of them can be run\n\n{EXAMPLE}"
    )]
    TwoCommands,
    #[error("a shell text is one argument, not {count}\n\n{fix}", count = words.len(), fix = Fix(words))]
    NotQuoted { words: Vec<OsString> },
    #[error("{option} is not an option of `lastbyte run`\n\n{fix}", fix = Fix(words))]
    ForeignOption { option: String, words: Vec<OsString> },
    #[error("--env takes NAME=VALUE, not {given:?}; to remove a variable use --unset NAME")]
    EnvNeedsValue { given: OsString },
    #[error("--unset takes the name of a variable, not {given:?}")]
    UnsetNeedsName { given: OsString },
    #[error(
        "--no-auth lets anybody run commands who can connect, so it is for loopback addresses \
         alone, and {address} is none; without it a token is asked for"
    )]
    OpenToOthers { address: SocketAddr },
    #[error("LASTBYTE_LOG is one of error, warn, info, debug and off, not {given:?}")]
    LogLevel { given: OsString },
}

const EXAMPLE: &str = "\
Give it as one shell text, or as a program and its arguments after `--`:
  lastbyte run 'make test | tail -5'
  lastbyte run -- make test";

/// Says what clap has found wrong, or shows the help that was asked for; returns the exit code.
pub(crate) fn explain(error: &clap::Error, program: &clap::Command) -> u8 {
    let words = run_words(program);
    match (error.kind(), words) {
        (ErrorKind::UnknownArgument, Some(words)) if suggestion(error).is_none() => {
            let option = text_of(error, ContextKind::InvalidArg).unwrap_or_default();
            tell::line(Error::ForeignOption { option, words });
        }
        // `lastbyte run df -h` must not do nothing and call it a success.
        (ErrorKind::DisplayHelp, Some(words)) => {
            let option = words.last().map(|word| word.display().to_string()).unwrap_or_default();
            tell::line(Error::ForeignOption { option, words });
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

/// The words of `lastbyte run`, if that is what was called, from the first that is neither an option nor an option's value.
fn run_words(program: &clap::Command) -> Option<Vec<OsString>> {
    let mut words = std::env::args_os().skip(1);
    let run = words.next().filter(|word| word == "run")?;
    let run = program.find_subcommand(run)?;
    let takes_value = |word: &OsStr| {
        let long = word.to_str().and_then(|word| word.strip_prefix("--"));
        run.get_arguments().any(|arg| arg.get_long() == long && arg.get_action().takes_values())
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
    Some(words.collect())
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
struct Fix<'a>(&'a [OsString]);

impl fmt::Display for Fix<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> =
            self.0.iter().map(|word| quoted(&word.to_string_lossy())).collect();
        let words = words.join(" ");
        writeln!(out, "Quote the command, or put it after `--`:")?;
        writeln!(out, "  lastbyte run {}", in_quotes(&words))?;
        write!(out, "  lastbyte run -- {words}")
    }
}

/// As a shell takes it for one word.
fn quoted(word: &str) -> String {
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
