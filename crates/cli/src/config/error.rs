//! What is wrong with settings, and where they stand.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use super::choice::Origin;
use super::setting::{ALL, Kind};
use crate::usage;

/// Why the settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    #[error("cannot read the configuration {path}", path = path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("the configuration {path} is not used: it is no regular file", path = path.display())]
    NoFile { path: PathBuf },
    #[error(
        "the configuration {path} is not used: {place} belongs to another user (uid {uid}), who could \
         change what is run; copy it to a file and folder of your own",
        path = path.display(), place = place.display()
    )]
    Foreign { path: PathBuf, place: PathBuf, uid: u32 },
    #[error(
        "the configuration {path} is not used: other users could change what is run; \
         `chmod go-w {}` makes it yours alone, or copy it to a folder of your own", words(open), path = path.display()
    )]
    Open { path: PathBuf, open: Vec<PathBuf> },
    #[error("{path}:{line}: this is not TOML: {what}", path = path.display())]
    Syntax { path: PathBuf, line: usize, what: String },
    #[error("{path}:{line}: {key:?} is no setting; there are {}", names(), path = path.display())]
    Unknown { path: PathBuf, line: usize, key: String },
    #[error("{path}:{line}: {name} is {}", wanted(*kind), path = path.display())]
    Type { path: PathBuf, line: usize, name: &'static str, kind: Kind },
    #[error("{variable} is true or false, not {given:?}")]
    Switch { variable: String, given: OsString },
    #[error("{origin}: {what}")]
    Value { origin: Origin, what: String },
    #[error("{what}")]
    Call { what: String },
}

fn names() -> String {
    ALL.map(|setting| setting.name).join(", ")
}

/// As a shell takes them.
fn words(paths: &[PathBuf]) -> String {
    let word = |path: &PathBuf| usage::quoted(&path.to_string_lossy());
    paths.iter().map(word).collect::<Vec<_>>().join(" ")
}

fn wanted(kind: Kind) -> &'static str {
    match kind {
        Kind::Text | Kind::Hidden | Kind::Path => "a text in quotes",
        Kind::List => "a list of texts, like [\"a\", \"b\"]",
        Kind::Switch => "true or false",
    }
}
