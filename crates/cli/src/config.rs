//! Settings that are not on the command line: variables and a file.
//!
//! A flag wins over a variable, a variable over the file, the file over what is usual. What is
//! found is handed to clap as the default of the flag of the same name, so that there is one place
//! for each type, each check and each message.

mod choice;
mod error;
mod file;
mod fill;
mod setting;
mod trust;

pub(crate) use choice::{Choice, Given, Origin};
pub(crate) use error::ConfigError;
pub(crate) use fill::{explain, fill, filled};
pub(crate) use setting::{ALL, Kind, Setting, of_variable};

/// The flag that names the file, on every command that has settings.
pub(crate) const HELP: &str = "Read settings from this file [default: $LASTBYTE_CONFIG, or \
                               lastbyte/config.toml in $XDG_CONFIG_HOME or ~/.config if it is there]";
