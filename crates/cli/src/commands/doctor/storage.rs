//! What the server's state directory takes on disk, and what is kept there.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lastbyte_client::wire::Retention;
use lastbyte_engine::{journal_file, log_folder, recorded_processes, set_aside_folders};
use rustix::fs::statvfs;
use serde::Serialize;

use crate::{format, units};

/// Sizes are those of the blocks that the kernel has allocated.
#[derive(Debug, Serialize)]
pub(super) struct Storage {
    state: PathBuf,
    /// Everything in the directory.
    bytes: u64,
    /// What this user can still write there.
    free_bytes: u64,
    output_bytes: u64,
    journal_bytes: u64,
    set_aside_bytes: u64,
    /// Processes whose output and ending are kept, running ones included; absent if the journal cannot be
    /// read.
    #[serde(skip_serializing_if = "Option::is_none")]
    processes: Option<u64>,
    /// The limits of the running server, else those that a server would have.
    retention: Retention,
}

impl Storage {
    /// Of a state directory that exists. The number of processes is read from the journal unless a server
    /// has reported it.
    pub(super) fn look(
        state: &Path,
        processes: Option<u64>,
        retention: Retention,
    ) -> io::Result<Self> {
        let disk = statvfs(state)?;
        let set_aside = set_aside_folders(state)?;
        Ok(Self {
            state: state.to_owned(),
            bytes: allocated(state)?,
            free_bytes: disk.f_bavail.saturating_mul(disk.f_frsize),
            output_bytes: allocated(&log_folder(state))?,
            journal_bytes: allocated(&journal_file(state))?,
            set_aside_bytes: set_aside
                .iter()
                .map(|folder| allocated(folder))
                .sum::<Result<_, _>>()?,
            processes: processes.or_else(|| recorded_processes(state).ok()),
            retention,
        })
    }
}

/// The disk space of a file, or of a directory and everything in it. What is removed meanwhile takes none.
fn allocated(path: &Path) -> io::Result<u64> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        found => found?,
    };
    let mut bytes = found.blocks() * 512;
    if found.is_dir() {
        for entry in fs::read_dir(path)? {
            bytes += allocated(&entry?.path())?;
        }
    }
    Ok(bytes)
}

impl fmt::Display for Storage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { state, bytes, free_bytes, output_bytes, journal_bytes, .. } = self;
        let [bytes, free, output, journal, aside] =
            [*bytes, *free_bytes, *output_bytes, *journal_bytes, self.set_aside_bytes]
                .map(format::size);
        writeln!(out, "The state directory {} takes {bytes}; {free} are free.", state.display())?;
        let of = match self.processes {
            Some(count) => format!(" of {}", format::count(count, "process", "processes")),
            None => String::new(),
        };
        write!(out, "It has {output} of output{of}, and a journal of {journal}")?;
        match self.set_aside_bytes {
            0 => writeln!(out, ".")?,
            _ => writeln!(out, "; {aside} are set aside.")?,
        }
        let Retention { at_least_ms, at_most_ms, per_session, processes, output_bytes } =
            self.retention;
        let [at_least, at_most] =
            [at_least_ms, at_most_ms].map(|ms| units::duration_text(Duration::from_millis(ms)));
        let output = format::size(output_bytes);
        writeln!(
            out,
            "Ended processes are kept for {at_least} to {at_most}: at most {per_session} of each session, \
             {processes} in all, and {output} of output."
        )
    }
}
