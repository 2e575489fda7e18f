//! Calls that make no sense, answered with the line that does.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use lastbyte_engine::Signal;
use lastbyte_sys::Errno;

use crate::{exit_code, print, units};

/// The commands that take a command.
const VERBS: [&str; 2] = ["run", "start"];

/// What is wrong with a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Error {
    #[error("no command given\n\n{}", example(.0))]
    NoCommand(&'static str),
    #[error("the command is empty\n\n{}", example(.0))]
    EmptyText(&'static str),
    #[error("the program name is empty\n\n{}", example(.0))]
    EmptyProgram(&'static str),
    #[error(
        "got both a shell command and a program after `--`; give only one\n\n{}",
        example(.0)
    )]
    TwoCommands(&'static str),
    #[error("pass the shell command as one quoted argument (got {count})\n\n{fix}", count = words.len(), fix = fix(verb, words))]
    NotQuoted { verb: &'static str, words: Vec<OsString> },
    #[error("{option} is not an option of `lastbyte {verb}`\n\n{fix}", fix = fix(verb, words))]
    ForeignOption { verb: &'static str, option: String, words: Vec<OsString> },
    #[error("{option} is not an option of `lastbyte {verb}`; {}", instead_of_option(verb, option))]
    UnknownOption { verb: &'static str, option: String },
    #[error("{name:?} is not a command; {}", instead_of_command(name).unwrap_or_default())]
    UnknownCommand { name: String },
    #[error("--env takes NAME=VALUE or NAME, and {given:?} does not begin with a name")]
    EnvNeedsName { given: OsString },
    #[error("--unset takes a variable name, not {given:?}")]
    UnsetNeedsName { given: OsString },
    #[error("{option} requires --sandbox workspace-write")]
    NeedsWorkspace { option: &'static str },
    #[error(
        "--network requires --sandbox read-only or workspace-write; without a sandbox, commands can use \
         the network anyway"
    )]
    NetworkNeedsSandbox,
    #[error("the process id is empty; `lastbyte ps` lists processes, and `last` is the newest")]
    EmptyId,
    #[error(
        "give a process id or name, or a selection like --failed or --session; `lastbyte ps` lists processes"
    )]
    NothingSelected,
    #[error("give process ids, or a selection like --failed or --session, not both")]
    IdsAndConditions,
    #[error("no signal given; `lastbyte signal ID TERM` sends TERM")]
    NoSignal,
    #[error("invalid signal {given:?}: {why}")]
    BadSignal { given: String, why: String },
    #[error("invalid directory {given:?}")]
    NoDirectory { given: OsString },
    #[error("cannot send {what} {given:?} to the server: not valid UTF-8")]
    NotText { what: &'static str, given: OsString },
    #[error(
        "--no-auth lets anyone who can connect run commands, so it allows only loopback addresses, not \
         {address}; without it, clients need a token"
    )]
    OpenToOthers { address: SocketAddr },
    #[error(
        "--keep-at-least ({}) is longer than --keep-at-most ({})",
        units::duration_text(*at_least), units::duration_text(*at_most)
    )]
    KeptLongerThanAtMost { at_least: Duration, at_most: Duration },
    #[error("cannot use the working directory {}: {errno}", path.display())]
    Workdir { path: PathBuf, errno: Errno },
    #[error("--token-file requires --server URL; a server on a socket file needs no token")]
    TokenForNobody,
    #[error(
        "--watch requires standard output to be a terminal; `lastbyte events` prints a line for each \
         change"
    )]
    WatchNeedsTerminal,
}

fn example(verb: &str) -> String {
    format!(
        "Pass one quoted shell command, or a program and its arguments after `--`:\n  \
         lastbyte {verb} 'make test | tail -5'\n  \
         lastbyte {verb} -- make test"
    )
}

/// What users of other programs mean by an option.
fn instead_of_option(verb: &str, option: &str) -> String {
    match option {
        "-e" => "to set a variable, use --env NAME=VALUE".into(),
        "-w" | "-C" | "--workdir" => "to choose a directory, use --cwd DIR".into(),
        "-t" | "-i" | "-it" => "for a terminal, use --tty".into(),
        "-d" | "--detach" => "to run in the background, use `lastbyte start`".into(),
        _ => format!("see `lastbyte {verb} --help`"),
    }
}

/// What users of other programs mean by a command. clap goes by spelling: it offers `stop` for `top`.
fn instead_of_command(name: &str) -> Option<&'static str> {
    Some(match name {
        "top" | "watch" => "`lastbyte ps --watch` shows what is running",
        "list" | "ls" | "jobs" | "status" => "`lastbyte ps` lists processes",
        "inspect" | "info" => "`lastbyte show ID` shows a process",
        "log" | "tail" | "follow" | "output" => "`lastbyte logs -f ID` follows the output",
        "kill" | "terminate" => "`lastbyte stop ID` stops a process and everything it started",
        "exec" | "add" => "`lastbyte run` runs a command, `lastbyte start` in the background",
        "rm" | "remove" | "clean" => "`lastbyte forget ID` removes an ended process and its output",
        "send" | "input" => "`lastbyte write ID` writes to a process",
        _ => return None,
    })
}

/// The arguments of this program. A signal may have a dash before it, which to clap is an option.
pub(crate) fn own_args() -> Vec<OsString> {
    let mut args: Vec<OsString> = std::env::args_os().collect();
    if args.get(1).is_some_and(|command| command == "signal") {
        args.iter_mut().skip(2).for_each(|word| *word = without_dash(word));
    }
    args
}

fn without_dash(word: &OsStr) -> OsString {
    let signal = word.to_str().and_then(|word| word.strip_prefix('-'));
    signal.filter(|signal| signal.parse::<Signal>().is_ok()).map_or(word.into(), OsString::from)
}

/// Prints the error that clap found, or the help that was requested; returns the exit code.
pub(crate) fn explain(error: &clap::Error, program: &clap::Command) -> u8 {
    let words = words_to_run(program);
    match (error.kind(), words) {
        (ErrorKind::UnknownArgument, Some((verb, words)))
            if text_of(error, ContextKind::SuggestedArg).is_none() =>
        {
            let option = text_of(error, ContextKind::InvalidArg).unwrap_or_default();
            let is_it = |word: &OsString| word.to_string_lossy().starts_with(&option);
            print::message(if words.iter().any(is_it) {
                Error::ForeignOption { verb, option, words }
            } else {
                Error::UnknownOption { verb, option }
            });
        }
        (ErrorKind::InvalidSubcommand, _) if instead_of_command(&command_in(error)).is_some() => {
            print::message(Error::UnknownCommand { name: command_in(error) });
        }
        // `lastbyte run df -h` must not do nothing and call it a success.
        (ErrorKind::DisplayHelp, Some((verb, words))) => {
            let option = words.last().map(|word| word.display().to_string()).unwrap_or_default();
            print::message(Error::ForeignOption { verb, option, words });
        }
        (ErrorKind::DisplayHelp | ErrorKind::DisplayVersion, _) => {
            return match error.print().and_then(|()| io::stdout().flush()) {
                Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                    print::message(format_args!("cannot write to standard output: {error}"));
                    exit_code::OWN_FAILURE
                }
                Ok(()) | Err(_) => 0,
            };
        }
        (ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand, _) => {
            _ = error.print(); // on stderr, where a failure could not be reported
        }
        _ => {
            let text = error.render().to_string();
            print::message(text.strip_prefix("error: ").unwrap_or(&text).trim_end());
        }
    }
    exit_code::USAGE
}

/// The words of a call that runs a command, from the first that is neither an option nor an
/// option's value.
fn words_to_run(program: &clap::Command) -> Option<(&'static str, Vec<OsString>)> {
    let mut words = std::env::args_os().skip(1);
    let name = words.next()?;
    let verb = VERBS.into_iter().find(|verb| name == *verb)?;
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

/// Whether all that follows `--` is one word with spaces, as only a shell would take it.
pub(crate) fn program_is_shell_text() -> bool {
    let words: Vec<_> = std::env::args_os().skip_while(|word| word != "--").skip(1).collect();
    matches!(words.as_slice(), [word] if word.as_encoded_bytes().contains(&b' '))
}

/// The name that is no command.
fn command_in(error: &clap::Error) -> String {
    text_of(error, ContextKind::InvalidSubcommand).unwrap_or_default()
}

fn text_of(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    }
}

/// The two ways to run these words.
fn fix(verb: &str, words: &[OsString]) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted(&word.to_string_lossy())).collect();
    let (words, quoted) = (words.join(" "), in_quotes(&words.join(" ")));
    format!(
        "Quote the command, or put it after `--`:\n  \
         lastbyte {verb} {quoted}\n  \
         lastbyte {verb} -- {words}"
    )
}

/// As a shell takes it for one word.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:=,+@%^".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.to_owned() } else { in_quotes(word) }
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
