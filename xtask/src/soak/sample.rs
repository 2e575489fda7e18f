//! What a server uses at one instant.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::kill_loop::doors::marked;
use crate::kill_loop::leftovers::{is_server, open_files};
use crate::kill_loop::{Server, Tally};

/// More than this at any instant is wrong: several times what a healthy server needs under this load.
const MOST: Sample = Sample { memory: 250 << 20, descriptors: 600, disk: 1 << 30, processes: 200 };

/// A minute.
const MOST_LOOKS: u32 = 6;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sample {
    /// Of keeper, worker and stand-in together, pages that are shared counted once.
    pub(super) memory: u64,
    /// Of the process that has most.
    pub(super) descriptors: u64,
    /// What the state directory takes on disk.
    pub(super) disk: u64,
    /// Everything that the server runs.
    pub(super) processes: u64,
}

/// A server, and what was seen of it before.
pub(super) struct Watched<'a> {
    server: &'a Server,
    /// Each with how often it was seen.
    zombies: BTreeMap<u32, u32>,
}

impl<'a> Watched<'a> {
    pub(super) fn new(server: &'a Server) -> Self {
        Self { server, zombies: BTreeMap::new() }
    }

    /// Measures it, and counts what is wrong.
    pub(super) fn sample(&mut self, tally: &Tally) -> Sample {
        let (own, commands): (Vec<_>, Vec<_>) =
            marked(&self.server.mark).into_iter().partition(is_server);
        let sample = Sample {
            memory: own.iter().map(|process| memory(process.pid)).sum(),
            descriptors: open_files(self.server).len() as u64,
            disk: space(&self.server.visible_state()),
            processes: commands.len() as u64,
        };
        if let Some(what) = sample.excess() {
            tally.wrong_at("the server under load", &what);
        }
        self.check_zombies(own.iter().map(|process| process.pid), tally);
        sample
    }

    /// A starved server may take long to reap a child, but not for ever.
    fn check_zombies(&mut self, servers: impl Iterator<Item = u32>, tally: &Tally) {
        let children = servers.flat_map(crate::kill_loop::children_of);
        let zombies = children.filter(|child| child.is_zombie()).map(|child| child.pid);
        let seen = |pid: u32| (pid, self.zombies.get(&pid).map_or(1, |before| before + 1));
        self.zombies = zombies.map(seen).collect();
        for (pid, _) in self.zombies.iter().filter(|(_, looks)| **looks == MOST_LOOKS) {
            let what = format!("{pid} is a zombie at {MOST_LOOKS} looks in a row");
            tally.wrong_at("the server under load", &what);
        }
    }
}

impl Sample {
    fn excess(&self) -> Option<String> {
        let is_within = self.memory <= MOST.memory
            && self.descriptors <= MOST.descriptors
            && self.disk <= MOST.disk
            && self.processes <= MOST.processes;
        (!is_within).then(|| format!("{self:?} is more than {MOST:?}"))
    }
}

/// 0 if it has just ended.
fn memory(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
    let kibibytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kibibytes.unwrap_or(0) << 10
}

/// Files that are removed meanwhile count nothing.
fn space(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(data) if data.is_dir() => space(&entry.path()),
            Ok(data) => data.blocks() * 512,
            Err(_) => 0,
        })
        .sum()
}
