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
    #[error("{option} is not an option of `lastbyte {command}`; {advice}")]
    UnknownOption { command: String, option: String, advice: String },
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
    #[error("the signal is the last argument: `lastbyte signal {} {signal}`", ids.join(" "))]
    SignalFirst { signal: String, ids: Vec<String> },
    #[error("invalid signal {given:?}: {why}")]
    BadSignal { given: String, why: String },
    #[error("invalid directory {given:?}")]
    NoDirectory { given: OsString },
    #[error("invalid --on: give one node, or labels as NAME=VALUE")]
    NodeAndLabels,
    #[cfg(feature = "fleet")]
    #[error("the name of this machine, {name:?}, cannot be that of a node: choose one with --node")]
    NodeName { name: String },
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

/// What users of other programs mean by an option. `number` is what they gave with it, if it is one.
fn instead_of_option(command: &str, option: &str, number: Option<&str>) -> Option<String> {
    let count = number.unwrap_or("COUNT");
    let time = number.map_or("TIME".into(), |number| format!("{number}s"));
    Some(match (command, option) {
        ("run" | "start", "-e") => "to set a variable, use --env NAME=VALUE".into(),
        ("run" | "start", "-w" | "-C" | "--workdir") => {
            "to choose a directory, use --cwd DIR".into()
        }
        ("run", "-t" | "-i") => "for a terminal, use --tty".into(),
        ("start", "-t") => "for a terminal, use --interactive".into(),
        ("run", "-d" | "--detach") => "to run in the background, use `lastbyte start`".into(),
        ("start", "-d" | "--detach") => {
            "leave it out: `lastbyte start` always runs in the background".into()
        }
        ("run", "--name") => "to name a process, use `lastbyte start --name NAME`".into(),
        ("run", "--rm") => "leave it out: `lastbyte run` keeps no output".into(),
        ("start", "--rm") => "leave it out: the server forgets ended processes by itself".into(),
        ("logs", "-n" | "--lines") => format!("for the last lines, use --tail {count}"),
        ("logs", option) if is_number(&option[1..]) => {
            format!("for the last lines, use --tail {}", &option[1..])
        }
        ("stop", "-t" | "--time" | "--timeout") => {
            format!("to choose how long to wait before KILL, use --grace {time}")
        }
        ("stop", "-f" | "--force" | "-9") => "to kill at once, use --grace 0s".into(),
        ("stop", "-s") => "to choose the signal, use --signal SIGNAL".into(),
        ("signal", "-s" | "--signal") => {
            "the signal is the last argument: `lastbyte signal ID KILL`".into()
        }
        ("wait", "-t") => format!("to wait no longer than this, use --timeout {time}"),
        ("ps", "-a" | "--all") => "leave it out: `lastbyte ps` lists ended processes too".into(),
        ("ps", "-q" | "--quiet") => "`lastbyte ps --json` prints whole ids".into(),
        ("forget", "-f" | "--force") => "to stop running processes first, use --stop".into(),
        _ => return None,
    })
}

/// What users of other programs mean by a command. clap goes by spelling: it offers `stop` for `top`.
fn instead_of_command(name: &str) -> Option<&'static str> {
    Some(match name {
        "top" | "watch" => "`lastbyte ps --watch` shows what is running",
        "list" | "ls" | "jobs" | "status" => "`lastbyte ps` lists processes",
        "inspect" | "info" => "`lastbyte show ID` shows a process",
        "log" | "tail" | "follow" | "output" => "`lastbyte logs -f ID` follows the output",
        "kill" | "terminate" => "`lastbyte stop ID` stops a process and everything it started",
        "exec" | "add" | "create" | "new" => {
            "`lastbyte run` runs a command, `lastbyte start` in the background"
        }
        "restart" => "`lastbyte stop ID` stops a process; then start its command again",
        "stats" => "`lastbyte ps --watch` shows what is running, `lastbyte show ID` what it used",
        "pause" | "suspend" => "`lastbyte signal ID STOP` suspends a process",
        "unpause" | "resume" => "`lastbyte signal ID CONT` resumes a suspended process",
        "port" => "`lastbyte wait ID --port PORT` waits until a process listens",
        "detach" => "`Ctrl-\\` detaches from a process on a terminal",
        "history" => "`lastbyte ps` lists processes, ended ones too",
        "version" => "`lastbyte --version` prints the version",
        "rm" | "remove" | "clean" => "`lastbyte forget ID` removes an ended process and its output",
        "prune" => "`lastbyte forget --ended` removes all ended processes and their output",
        "send" | "send-keys" | "input" => "`lastbyte write ID` writes to a process",
        "kill-server" => "`lastbyte shutdown` stops the server and everything it runs",
        "daemon" => "`lastbyte serve` runs the server; `lastbyte start` starts one if needed",
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
pub(crate) fn explain(mut error: clap::Error, program: &clap::Command) -> u8 {
    if let Some(own) = own_explanation(&error, program) {
        print::message(own);
        return exit_code::USAGE;
    }
    offer_no_hidden_command(&mut error, program);
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            return match error.print().and_then(|()| io::stdout().flush()) {
                Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                    print::message(format_args!("cannot write to standard output: {error}"));
                    exit_code::OWN_FAILURE
                }
                Ok(()) | Err(_) => 0,
            };
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            _ = error.print(); // on stderr, where a failure could not be reported
        }
        _ => {
            let text = error.render().to_string();
            print::message(text.strip_prefix("error: ").unwrap_or(&text).trim_end());
        }
    }
    exit_code::USAGE
}

/// clap offers every command that is spelt alike.
fn offer_no_hidden_command(error: &mut clap::Error, program: &clap::Command) {
    let Some(ContextValue::Strings(mut names)) = error.remove(ContextKind::SuggestedSubcommand)
    else {
        return;
    };
    names.retain(|name| !program.find_subcommand(name).is_some_and(clap::Command::is_hide_set));
    if names.is_empty() {
        // The list of other advice is empty, but clap would print a blank line for it.
        error.remove(ContextKind::Suggested);
    } else {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(names));
    }
}

/// What is wrong, if we can say it better than clap.
fn own_explanation(error: &clap::Error, program: &clap::Command) -> Option<Error> {
    match error.kind() {
        ErrorKind::UnknownArgument => unknown_option(error, program),
        ErrorKind::InvalidSubcommand => {
            let name = text_of(error, ContextKind::InvalidSubcommand)?;
            instead_of_command(&name).filter(|_| !is_below_command(&name, program))?;
            Some(Error::UnknownCommand { name })
        }
        // `lastbyte run df -h` must not do nothing and call it a success.
        ErrorKind::DisplayHelp => {
            let (verb, words) = words_to_run(program)?;
            let option = words.last().map(|word| word.display().to_string()).unwrap_or_default();
            Some(Error::ForeignOption { verb, option, words })
        }
        _ => None,
    }
}

/// `None` if it is no option, or misspelt.
fn unknown_option(error: &clap::Error, program: &clap::Command) -> Option<Error> {
    let option = text_of(error, ContextKind::InvalidArg).filter(|it| it.starts_with('-'))?;
    let is_it = |word: &OsString| word.to_string_lossy().starts_with(&option);
    let is_misspelt = error.get(ContextKind::SuggestedArg).is_some();
    if let Some((verb, words)) = words_to_run(program)
        && words.iter().any(is_it)
    {
        return (!is_misspelt).then_some(Error::ForeignOption { verb, option, words });
    }
    let command = called_command(program)?;
    let option = whole_number(&option).unwrap_or(option);
    let number = number_with(&option);
    let advice = match instead_of_option(&command, &option, number.as_deref()) {
        Some(advice) => advice,
        None if is_misspelt => return None,
        None => format!("see `lastbyte {command} --help`"),
    };
    Some(Error::UnknownOption { command, option, advice })
}

/// Whether a command stands before this word, as in `config list`.
fn is_below_command(word: &str, program: &clap::Command) -> bool {
    let mut before = std::env::args_os().skip(1).take_while(|other| other != word);
    before.any(|other| program.find_subcommand(other).is_some())
}

/// The words of the command that was called, without its arguments: `run`, or `config show`.
fn called_command(program: &clap::Command) -> Option<String> {
    let (mut names, mut command) = (Vec::new(), program);
    for word in std::env::args_os().skip(1) {
        if let Some(below) = command.find_subcommand(&word) {
            names.push(below.get_name());
            command = below;
        } else if !names.is_empty() {
            break;
        }
    }
    (!names.is_empty()).then(|| names.join(" "))
}

/// The number given with an option: `-n 10`, `-n10` or `--lines=10`.
fn number_with(option: &str) -> Option<String> {
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    let mut words = words.skip_while(|word| !word.starts_with(option));
    let own = words.next()?[option.len()..].trim_start_matches('=').to_owned();
    let number = if own.is_empty() { words.next()? } else { own };
    is_number(&number).then_some(number)
}

/// `-10`, of which clap names only `-1`.
fn whole_number(option: &str) -> Option<String> {
    let mut words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    words.find(|word| word.starts_with(option) && is_number(&word[1..]))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The words of a call that runs a command, from the first that is neither an option nor an
/// option's value.
fn words_to_run(program: &clap::Command) -> Option<(&'static str, Vec<OsString>)> {
    let mut words = std::env::args_os().skip(1);
    let name = words.next()?;
    let verb = VERBS.into_iter().find(|verb| name == *verb)?;
    let command = program.find_subcommand(name)?;
    let takes_value = |word: &OsStr| {
        let Some(long) = word.to_str().and_then(|word| word.strip_prefix("--")) else {
            return false;
        };
        let mut options = command.get_arguments();
        options.any(|arg| arg.get_long() == Some(long) && arg.get_action().takes_values())
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
