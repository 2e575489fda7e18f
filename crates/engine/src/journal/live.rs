//! Which processes still have records, and how large these are.

use std::collections::{HashMap, HashSet};

use super::fingerprint::HashKey;
use super::frames::frame;
use super::record::{Record, decoded};
use crate::Id;

/// The size of the records of each process that is not forgotten.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LiveRecords {
    sizes: HashMap<Id, RecordSize>,
    bytes: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct RecordSize {
    bytes: u64,
    /// They include output.
    output: bool,
}

impl LiveRecords {
    /// The size of all of them.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Counts a record of this size; returns whether it forgets output.
    pub(super) fn count(&mut self, record: &Record, bytes: u64) -> bool {
        let id = record.id();
        match record {
            Record::Launched(_)
            | Record::Started { .. }
            | Record::Ended { .. }
            | Record::TimedOut { .. } => {
                let size = self.sizes.entry(id).or_default();
                size.bytes += bytes;
                size.output |= has_output(record);
                self.bytes += bytes;
                false
            }
            Record::Failed { .. } | Record::Forgotten { .. } => {
                let gone = self.sizes.remove(&id).unwrap_or_default();
                self.bytes -= gone.bytes;
                gone.output
            }
        }
    }

    /// Drops the records of processes that were launched and forgotten while the disk was full. The
    /// last process of each cgroup stays; otherwise the cgroup would seem to belong to the one before.
    pub(super) fn without_forgotten(&self, key: HashKey, pending: &[u8]) -> Vec<u8> {
        let records = decoded(key, pending);
        let mut launched_here = HashSet::new();
        let mut last_users = HashMap::new();
        for record in &records {
            if let Record::Launched(launched) = record {
                launched_here.insert(launched.spec.id);
                last_users.extend(launched.cgroup.clone().map(|cgroup| (cgroup, launched.spec.id)));
            }
        }
        let last_users: HashSet<Id> = last_users.into_values().collect();
        let is_kept = |record: &&Record| {
            let id = record.id();
            let is_forgotten = launched_here.contains(&id) && !self.sizes.contains_key(&id);
            !is_forgotten || last_users.contains(&id)
        };
        records.iter().filter(is_kept).flat_map(|record| frame(key, &record.encode())).collect()
    }
}

fn has_output(record: &Record) -> bool {
    matches!(record, Record::Ended { short: Some(short), .. } if !short.is_empty())
}
