//! What a command may use: options of `run` and `start`, and lists for `serve`.

use std::time::Duration;

use lastbyte_client::wire::{Cpus, Limits};

use crate::units;

/// Limits of one command and everything it starts.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct LimitArgs {
    /// Kill the command when it and everything it started use more memory than this, like 512M or 2G
    #[arg(long, value_name = "SIZE", value_parser = units::parse_size)]
    memory: Option<u64>,

    /// Let them use this many processors, like 1.5; only where the kernel can enforce it
    #[arg(long, value_name = "COUNT", value_parser = parse_cpus)]
    cpus: Option<Cpus>,

    /// Let them be this many processes and threads. Where the kernel cannot refuse more, they are killed
    #[arg(long, value_name = "COUNT", value_parser = parse_count)]
    pids: Option<u64>,

    /// Let each process have this many files open
    #[arg(long, value_name = "COUNT", value_parser = parse_count)]
    files: Option<u64>,

    /// End a process that writes a file larger than this
    #[arg(long, value_name = "SIZE", value_parser = units::parse_size)]
    file_size: Option<u64>,

    /// Stop the command when it and everything it started have used this much processor time
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration)]
    cpu_time: Option<Duration>,

    /// Do not start the command unless the kernel enforces every limit
    #[arg(long)]
    strict_limits: bool,
}

impl LimitArgs {
    /// `None` without any.
    pub(crate) fn limits(&self) -> Option<Limits> {
        let Self { memory, cpus, pids, files, file_size, cpu_time, strict_limits } = *self;
        let limits = Limits {
            memory_bytes: memory,
            cpus,
            pids,
            open_files: files,
            file_size_bytes: file_size,
            cpu_time_ms: cpu_time.map(units::ms),
            strict: strict_limits,
        };
        (limits != Limits::default()).then_some(limits)
    }
}

fn parse_cpus(text: &str) -> Result<Cpus, String> {
    let cpus = text.parse().ok().and_then(Cpus::new);
    cpus.ok_or_else(|| "expected a number of processors, like 0.5 or 2".into())
}

fn parse_count(text: &str) -> Result<u64, String> {
    units::parse_count(text, u64::MAX)
}

const LIST: &str =
    "expected a list like memory=2G,cpus=1.5,pids=200,files=1024,file-size=10G,cpu-time=5m";

/// Reads `memory=2G,pids=200`: the names and values of the options of `run` and `start`.
pub(crate) fn parse_list(text: &str) -> Result<Limits, String> {
    let mut limits = Limits::default();
    for part in text.split(',') {
        let (name, value) = part.split_once('=').ok_or(LIST)?;
        match name {
            "memory" => limits.memory_bytes = Some(units::parse_size(value)?),
            "cpus" => limits.cpus = Some(parse_cpus(value)?),
            "pids" => limits.pids = Some(parse_count(value)?),
            "files" => limits.open_files = Some(parse_count(value)?),
            "file-size" => limits.file_size_bytes = Some(units::parse_size(value)?),
            "cpu-time" => limits.cpu_time_ms = Some(units::ms(units::parse_duration(value)?)),
            _ => return Err(LIST.into()),
        }
    }
    Ok(limits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_limits_takes_what_the_options_take() {
        let all = "memory=2G,cpus=1.5,pids=200,files=1024,file-size=10G,cpu-time=5m";
        let want = Limits {
            memory_bytes: Some(2 << 30),
            cpus: Cpus::new(1.5),
            pids: Some(200),
            open_files: Some(1024),
            file_size_bytes: Some(10 << 30),
            cpu_time_ms: Some(300_000),
            strict: false,
        };
        assert_eq!(parse_list(all), Ok(want));
        for text in ["", "memory", "memory=", "pids=0", "cpus=no", "speed=3", "pids=1,,files=2"] {
            assert!(parse_list(text).is_err(), "{text:?}");
        }
    }
}
