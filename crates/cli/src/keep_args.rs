//! How long, how many and how much of its ended processes a server keeps.

use std::path::Path;
use std::time::Duration;

use clap::{Args, Command, FromArgMatches};
use lastbyte_engine::{Retention, Settings};

use crate::config::{self, Choice};
use crate::{units, usage};

/// With less, the output of a few processes would not fit.
const LEAST_BYTES: u64 = 16 << 20;

/// What to keep. The defaults are those of the engine.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct KeepArgs {
    /// Keep an ended process and its output for at least this long
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = units::parse_duration_or_zero)]
    keep_at_least: Duration,

    /// Forget an ended process after this long
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = units::parse_duration)]
    keep_at_most: Duration,

    /// Past --keep-at-least, keep only this many ended processes of each session; those without a
    /// session count as one session
    #[arg(long, value_name = "COUNT", default_value = "200", value_parser = units::parse_whole::<usize>)]
    keep_per_session: usize,

    /// Keep only this many ended processes in all: past it the oldest are forgotten at any age
    #[arg(long, value_name = "COUNT", default_value = "10000", value_parser = units::parse_whole::<usize>)]
    keep_processes: usize,

    /// Past --keep-at-least, forget the oldest while the output of ended processes takes more than this
    /// on disk, 16MiB or more. At twice this, counting running ones as well, ended processes are
    /// forgotten at any age
    #[arg(long, value_name = "SIZE", default_value = "2GiB", value_parser = parse_bytes)]
    keep_bytes: u64,
}

/// What a server with these settings keeps.
pub(crate) fn from_settings(config: Option<&Path>) -> anyhow::Result<Retention> {
    let choice = Choice::load(config)?;
    let command = KeepArgs::augment_args(Command::new("serve").no_binary_name(true));
    let parsed = config::filled(command, &choice).try_get_matches_from([""; 0]);
    let parsed = parsed.map_err(|error| config::explain(&error, &choice))?;
    Ok(KeepArgs::from_arg_matches(&parsed)?.retention())
}

fn parse_bytes(text: &str) -> Result<u64, String> {
    match units::parse_size(text)? {
        bytes if bytes < LEAST_BYTES => Err("expected 16MiB or more".into()),
        bytes => Ok(bytes),
    }
}

impl KeepArgs {
    pub(crate) fn check(&self) -> Result<(), usage::Error> {
        let (at_least, at_most) = (self.keep_at_least, self.keep_at_most);
        if at_least > at_most {
            return Err(usage::Error::KeptLongerThanAtMost { at_least, at_most });
        }
        Ok(())
    }

    pub(crate) fn retention(&self) -> Retention {
        Retention {
            at_least: self.keep_at_least,
            at_most: self.keep_at_most,
            per_session: self.keep_per_session,
            in_all: self.keep_processes,
            bytes: self.keep_bytes,
        }
    }

    /// These settings, with what is to be kept.
    pub(crate) fn apply(&self, settings: Settings) -> Settings {
        let disk_quota = self.keep_bytes.saturating_mul(2);
        Settings { retention: self.retention(), disk_quota, ..settings }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<KeepArgs, String> {
        let command = KeepArgs::augment_args(Command::new("serve").no_binary_name(true));
        let matches = command.try_get_matches_from(arguments);
        let matches = matches.map_err(|error| error.to_string())?;
        Ok(KeepArgs::from_arg_matches(&matches).unwrap())
    }

    #[test]
    fn the_defaults_are_those_of_the_engine() {
        let settings = parse(&[]).unwrap().apply(Settings::new("/state"));
        let defaults = Settings::new("/state");
        assert_eq!(settings.retention, defaults.retention);
        assert_eq!(settings.disk_quota, defaults.disk_quota);
    }

    #[test]
    fn too_few_bytes_and_times_in_the_wrong_order_are_refused() {
        let refused = parse(&["--keep-bytes", "16MB"]).unwrap_err();
        assert!(refused.contains("expected 16MiB or more"), "{refused}");
        assert_eq!(parse(&["--keep-bytes", "16MiB"]).unwrap().keep_bytes, 16 << 20);
        let refused = parse(&["--keep-at-most", "9m"]).unwrap().check().unwrap_err();
        let want = "--keep-at-least (10m) is longer than --keep-at-most (9m)";
        assert_eq!(refused.to_string(), want);
    }
}
