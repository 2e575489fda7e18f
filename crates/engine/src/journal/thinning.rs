//! Drops pending records that nobody will need.

use std::collections::{HashMap, HashSet};

use super::fingerprint::HashKey;
use super::frames::frame;
use super::live::Live;
use super::record::{Record, decoded};
use crate::Id;

/// Drops the records of processes that were launched and forgotten while the disk was full. The last
/// process of each cgroup stays; otherwise its cgroup would seem to belong to the one before it.
pub(super) fn thinned(key: HashKey, pending: &[u8], live: &Live) -> Vec<u8> {
    let records = decoded(key, pending);
    let mut launched_here = HashSet::new();
    let mut last = HashMap::new();
    for record in &records {
        if let Record::Launched(launched) = record {
            launched_here.insert(launched.id);
            last.extend(launched.cgroup.clone().map(|cgroup| (cgroup, launched.id)));
        }
    }
    let last_users: HashSet<Id> = last.into_values().collect();
    let mut kept = Vec::new();
    for record in records {
        let id = record.id();
        let is_forgotten = launched_here.contains(&id) && !live.has(id);
        if !is_forgotten || last_users.contains(&id) {
            kept.extend(frame(key, &record.encode()));
        }
    }
    kept
}
