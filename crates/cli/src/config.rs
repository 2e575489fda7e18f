//! Settings that are not on the command line: variables and a file.
//!
//! A flag wins over a variable, a variable over the file, the file over the default. What is found is
//! handed to clap as the default of the flag of the same name, so that there is one place for each
//! type, each check and each message. `file.rs` reads the file, `trust.rs` checks who can change it,
//! `choice.rs` merges file and variables.

mod choice;
mod file;
mod trust;

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue};
use clap::parser::ValueSource;
use clap::{ArgMatches, Command};

use crate::usage;

pub(crate) use choice::{Choice, Given, Origin};
pub(crate) use file::named as named_file;

/// The flag that names the file, on every command that has settings.
pub(crate) const HELP: &str = "Read settings from this file [default: $LASTBYTE_CONFIG, or \
                               lastbyte/config.toml in $XDG_CONFIG_HOME or ~/.config if it exists]";

/// Why the settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    #[error("cannot read config file {path}", path = path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot use config file {path}: not a regular file", path = path.display())]
    NoFile { path: PathBuf },
    #[error(
        "cannot use config file {path}: {place} belongs to another user (uid {uid}), who could \
         change what is run; copy it to a file and directory of your own",
        path = path.display(), place = place.display()
    )]
    Foreign { path: PathBuf, place: PathBuf, uid: u32 },
    #[error(
        "cannot use config file {path}: other users could change what is run; \
         run `chmod go-w {}`, or copy it to a directory of your own", words(open), path = path.display()
    )]
    Open { path: PathBuf, open: Vec<PathBuf> },
    #[error("cannot use config file {path}: it is not UTF-8", path = path.display())]
    NotText { path: PathBuf },
    #[error("{variable} must be true, false, 1 or 0, not {given:?}")]
    Switch { variable: String, given: OsString },
    #[error("{origin}: {what}")]
    Value { origin: Origin, what: String },
    #[error("{what}")]
    Call { what: String },
}

/// As a shell takes them.
fn words(paths: &[PathBuf]) -> String {
    let word = |path: &PathBuf| usage::quoted(&path.to_string_lossy());
    paths.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// The same call again, with the settings of variables and file for the flags that it does not
/// have. A command without `--config` has no settings.
pub(crate) fn fill(program: Command, call: ArgMatches) -> Result<ArgMatches, ConfigError> {
    let Some((name, flags)) = call.subcommand() else { return Ok(call) };
    let Ok(config) = flags.try_get_one::<PathBuf>("config") else { return Ok(call) };
    let mut choice = Choice::load(config.map(PathBuf::as_path))?;
    if is_given(flags, "socket") || is_given(flags, "state") {
        choice = choice.without_server();
    }
    let program = program.mut_subcommand(name, |command| filled(command, &choice));
    program.try_get_matches_from(usage::own_args()).map_err(|error| explain(&error, &choice))
}

/// The command with settings as the defaults of its flags. A default is in conflict with nothing.
pub(crate) fn filled(command: Command, choice: &Choice) -> Command {
    command.mut_args(|flag| match flag.get_long().and_then(|name| choice.get(name)) {
        Some(given) => flag.default_values(&given.values),
        None => flag,
    })
}

fn is_given(flags: &ArgMatches, id: &str) -> bool {
    flags.try_contains_id(id).is_ok_and(|there| there)
        && flags.value_source(id) == Some(ValueSource::CommandLine)
}

/// In the words of clap, which speaks of a flag, with where the value really stands.
pub(crate) fn explain(error: &clap::Error, choice: &Choice) -> ConfigError {
    let text = error.render().to_string();
    let what = text.split("\n\nFor more").next().unwrap_or_default();
    let what = what.strip_prefix("error: ").unwrap_or(what).trim_end().to_owned();
    let flag = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(flag)) => flag.as_str(),
        _ => "",
    };
    let name = flag.trim_start_matches("--").split([' ', '=']).next().unwrap_or_default();
    match choice.get(name) {
        Some(given) => ConfigError::Value {
            origin: given.origin.clone(),
            what: what.replacen(&format!("'{flag}'"), given.setting.name, 1),
        },
        None => ConfigError::Call { what },
    }
}

/// One thing that can be set by a flag, a variable or a line of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Setting {
    /// The key in the file, and the flag without its dashes.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
}

/// The type of a setting before clap parses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    /// Text that may have a secret in it, and is not shown.
    Hidden,
    /// In the file it is seen from the file's folder.
    Path,
    /// In a variable separated by commas.
    List,
    Switch,
    /// In the file a number, or text like on the command line.
    Number,
}

#[cfg(not(feature = "fleet"))]
const COUNT: usize = 23;
#[cfg(feature = "fleet")]
const COUNT: usize = 30;

pub(crate) const ALL: [Setting; COUNT] = [
    Setting { name: "state", kind: Kind::Path },
    Setting { name: "socket", kind: Kind::Path },
    Setting { name: "listen", kind: Kind::List },
    Setting { name: "no-auth", kind: Kind::Switch },
    Setting { name: "no-keeper", kind: Kind::Switch },
    Setting { name: "host", kind: Kind::List },
    Setting { name: "workdir", kind: Kind::Path },
    Setting { name: "env-hook", kind: Kind::Hidden },
    Setting { name: "default-sandbox", kind: Kind::Text },
    Setting { name: "keep-at-least", kind: Kind::Text },
    Setting { name: "keep-at-most", kind: Kind::Text },
    Setting { name: "keep-per-session", kind: Kind::Number },
    Setting { name: "keep-processes", kind: Kind::Number },
    Setting { name: "keep-bytes", kind: Kind::Number },
    Setting { name: "default-limits", kind: Kind::Text },
    Setting { name: "max-limits", kind: Kind::Text },
    Setting { name: "max-running", kind: Kind::Number },
    Setting { name: "max-running-per-session", kind: Kind::Number },
    Setting { name: "max-bytes", kind: Kind::Number },
    Setting { name: "max-bytes-per-session", kind: Kind::Number },
    Setting { name: "log", kind: Kind::Text },
    Setting { name: "server", kind: Kind::Text },
    Setting { name: "token-file", kind: Kind::Path },
    #[cfg(feature = "fleet")]
    Setting { name: "fleet", kind: Kind::Text },
    #[cfg(feature = "fleet")]
    Setting { name: "nats", kind: Kind::Text },
    #[cfg(feature = "fleet")]
    Setting { name: "nats-creds", kind: Kind::Path },
    #[cfg(feature = "fleet")]
    Setting { name: "nats-ca", kind: Kind::Path },
    #[cfg(feature = "fleet")]
    Setting { name: "node", kind: Kind::Text },
    #[cfg(feature = "fleet")]
    Setting { name: "slots", kind: Kind::Number },
    #[cfg(feature = "fleet")]
    Setting { name: "gateway", kind: Kind::Switch },
];

/// The setting that this variable is for.
pub(crate) fn from_variable(variable: &OsStr) -> Option<Setting> {
    ALL.into_iter().find(|setting| setting.variable().as_str() == variable)
}

impl Setting {
    /// `LASTBYTE_NO_AUTH` for `no-auth`.
    pub(crate) fn variable(self) -> String {
        format!("LASTBYTE_{}", self.name.replace('-', "_").to_uppercase())
    }

    /// Also applies to the server; the others name one by its URL.
    pub(crate) fn is_for_server(self) -> bool {
        !matches!(self.name, "server" | "token-file" | "fleet")
    }
}
