//! What a server lets commands and sessions use.

use lastbyte_client::wire::Limits;
use lastbyte_engine::{Caps, ResourceRules, Settings};
use lastbyte_server::resources;

use crate::{limit_args, units};

/// Limits of all commands, and caps on their number and output.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct CapArgs {
    /// Limit commands that do not choose, like memory=2G,cpus=1.5,pids=200,files=1024,file-size=10G,cpu-time=5m
    #[arg(long, value_name = "LIST", value_parser = limit_args::parse_list)]
    default_limits: Option<Limits>,

    /// Refuse commands that ask for more than this, and give it to those that do not choose and have no
    /// default; a list like that of --default-limits
    #[arg(long, value_name = "LIST", value_parser = limit_args::parse_list)]
    max_limits: Option<Limits>,

    /// Refuse to start a command while this many run
    #[arg(long, value_name = "COUNT", value_parser = units::parse_whole::<usize>)]
    max_running: Option<usize>,

    /// Refuse to start a command while this many of its session run; those without a session count as
    /// one session
    #[arg(long, value_name = "COUNT", value_parser = units::parse_whole::<usize>)]
    max_running_per_session: Option<usize>,

    /// Refuse to start a command while the output of all processes takes this much on disk
    #[arg(long, value_name = "SIZE", value_parser = units::parse_size)]
    max_bytes: Option<u64>,

    /// Refuse to start a command while the output of its session takes this much on disk
    #[arg(long, value_name = "SIZE", value_parser = units::parse_size)]
    max_bytes_per_session: Option<u64>,
}

impl CapArgs {
    /// These settings, with limits and caps.
    pub(crate) fn apply(&self, settings: Settings) -> Settings {
        Settings {
            resources: ResourceRules {
                defaults: self.default_limits.map(resources).unwrap_or_default(),
                caps: self.max_limits.map(resources).unwrap_or_default(),
            },
            caps: Caps {
                running: self.max_running,
                running_per_session: self.max_running_per_session,
                bytes: self.max_bytes,
                bytes_per_session: self.max_bytes_per_session,
            },
            ..settings
        }
    }
}
