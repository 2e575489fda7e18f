//! Records that wait for room, without those that nobody will ask for.

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
    let mut came = HashSet::new();
    let mut last = HashMap::new();
    for record in &records {
        if let Record::Launched(launched) = record {
            came.insert(launched.spec.id);
            last.extend(launched.cgroup.clone().map(|cgroup| (cgroup, launched.spec.id)));
        }
    }
    let had_a_cgroup_last: HashSet<Id> = last.into_values().collect();
    let mut kept = Vec::new();
    for record in records {
        let id = record.id();
        let went = came.contains(&id) && !live.has(id);
        if !went || had_a_cgroup_last.contains(&id) {
            kept.extend(frame(key, &record.encode()));
        }
    }
    kept
}
