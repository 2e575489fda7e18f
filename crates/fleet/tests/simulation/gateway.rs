//! A gateway: what it sees of the presence bucket, and the calls that it is working on.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use lastbyte_fleet::{Action, Bid, Entry, Epoch, KeyedStart, Presence, Revision};

use crate::bucket::{Bucket, Name, Record, Value};
use crate::node::Id;
use crate::world::SILENT_AFTER;

pub(crate) struct Gateway {
    pub(crate) presence: Presence,
    /// The presence records that it has seen.
    seen: usize,
    pub(crate) calls: BTreeMap<u64, Call>,
}

/// A client's call.
pub(crate) struct Call {
    pub(crate) client: usize,
    pub(crate) key: usize,
    pub(crate) machine: KeyedStart<Id>,
    /// What was asked last, and with which request.
    pub(crate) action: Action<Id>,
    pub(crate) request: u64,
    pub(crate) bids: Vec<Bid>,
}

impl Gateway {
    pub(crate) fn new() -> Self {
        let presence = Presence::new(Duration::from_millis(SILENT_AFTER));
        Self { presence, seen: 0, calls: BTreeMap::new() }
    }

    /// Begins to watch, at a server that has all writes until `at`.
    pub(crate) fn list(&mut self, bucket: &Bucket, nodes: usize, at: u64, now: Instant) {
        self.presence.list_again();
        self.seen = bucket.log.partition_point(|record| record.at <= at);
        let mut entries: Vec<(Entry, Revision)> = (0..nodes)
            .filter_map(|node| match bucket.read(&Name::Node(node), at)? {
                (Value::Entry(entry), revision) => Some((entry, revision)),
                (Value::Claim(_) | Value::Removed, _) => None,
            })
            .collect();
        entries.sort_by_key(|(_, revision)| *revision);
        for (entry, revision) in entries {
            self.presence.put(entry, revision, now);
        }
        self.presence.listed(now);
    }

    /// Goes on watching.
    pub(crate) fn watch(&mut self, bucket: &Bucket, at: u64, now: Instant) {
        while let Some(record) = bucket.log.get(self.seen).filter(|record| record.at <= at) {
            self.seen += 1;
            let revision = Revision(self.seen as u64);
            match record {
                Record { value: Value::Entry(entry), .. } => {
                    self.presence.put(entry.clone(), revision, now);
                }
                Record { name: Name::Node(node), value: Value::Removed, .. } => {
                    self.presence.removed(&node.to_string(), revision, now);
                }
                Record { .. } => {}
            }
        }
    }
}

/// The epoch that an entry was written in, if it was not the write by which a node joined.
pub(crate) fn is_of(entry: &Entry, at: Revision, epoch: Epoch) -> bool {
    entry.epoch.unwrap_or(Epoch(at.0)) == epoch
}
