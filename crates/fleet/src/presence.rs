//! Which nodes a gateway knows, from the entries of the presence bucket.
//!
//! A node joins by writing its entry (on the revision of its last one, or as a new key); the
//! revision of that write is its epoch. Each beat writes the entry again, with the epoch and on the
//! revision of the beat before. An entry without a beat expires.
//!
//! ```text
//!          joins                 no beat seen for a while           beat
//! unknown ───────▶ present ────────────────────────▶ silent ───────────────▶ present
//!                     │ expired, deleted or not listed  │
//!                     └──────────────▶ gone ◀───────────┘      joins again: present, newer epoch
//! ```
//!
//! *Silent* is this gateway's impression, and may be its own fault. *Gone* is what the bucket says,
//! and final for that epoch: a node stops starting processes before its entry expires ([`Fence`]).
//! So only *gone* tells that the lease of an epoch is over.
//!
//! [`Fence`]: crate::Fence

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::{Bid, Epoch, Revision};

/// What a node writes into the presence bucket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub node: String,
    /// Which server it is: another one with the same name does not join while this entry lives.
    pub server: String,
    /// None in the write by which it joins: the revision of that write is the epoch.
    pub epoch: Option<Epoch>,
    pub labels: BTreeMap<String, String>,
    pub free_slots: u32,
    pub load: u32,
    pub draining: bool,
}

/// What is known about a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// No entry of it was ever seen.
    Unknown,
    Present {
        epoch: Epoch,
    },
    /// No beat was seen since then. It may come back in the same epoch.
    Silent {
        epoch: Epoch,
        since: Instant,
    },
    /// Its entry expired or was deleted. If it comes back, then in a newer epoch.
    Gone {
        epoch: Epoch,
        since: Instant,
    },
}

/// Whether a node that does not answer may still make a start that was meant for one of its epochs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lease {
    /// Never again, and the node is gone. What it started before is still its own to report.
    Over,
    /// It may, or this gateway cannot tell. Or it has joined again since: then it is only late with its
    /// answer, and knows what became of the start.
    MayHold,
}

/// The nodes, as one gateway sees them.
#[derive(Debug)]
pub struct Presence {
    silent_after: Duration,
    nodes: BTreeMap<String, Node>,
    /// The newest write seen since the watch began. Once the listing is complete, all before it
    /// were seen too.
    revision: Revision,
    listing: Listing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Listing {
    Running,
    Complete,
}

#[derive(Debug)]
struct Node {
    /// As of its last beat.
    bid: Bid,
    beat_at: Instant,
    revision: Revision,
    gone_at: Option<Instant>,
    listed: bool,
}

impl Presence {
    /// A node is silent when no beat was seen for `silent_after`.
    pub fn new(silent_after: Duration) -> Self {
        Self {
            silent_after,
            nodes: BTreeMap::new(),
            revision: Revision(0),
            listing: Listing::Running,
        }
    }

    /// The watch of the bucket begins anew: every entry there is will be put, then `listed` called.
    pub fn list_again(&mut self) {
        self.listing = Listing::Running;
        self.revision = Revision(0);
        for node in self.nodes.values_mut() {
            node.listed = false;
        }
    }

    /// All entries that there were have been put. What was not among them is gone, unless the
    /// listing is older than what was known: it may come from a server that lags behind.
    pub fn listed(&mut self, now: Instant) {
        self.listing = Listing::Complete;
        let missing = |node: &&mut Node| !node.listed && node.revision <= self.revision;
        for node in self.nodes.values_mut().filter(missing) {
            node.gone_at.get_or_insert(now);
        }
    }

    /// An entry was written. One that is older than what is known changes nothing.
    pub fn put(&mut self, entry: Entry, revision: Revision, now: Instant) {
        self.revision = self.revision.max(revision);
        let epoch = entry.epoch.unwrap_or(Epoch(revision.0));
        if let Some(known) = self.nodes.get_mut(&entry.node) {
            let fenced = epoch < known.bid.epoch;
            let ended = epoch == known.bid.epoch && known.gone_at.is_some();
            if revision < known.revision || fenced || ended {
                return;
            }
            // Listed again, but no new beat.
            if revision == known.revision {
                known.listed = true;
                return;
            }
        }
        let Entry { node, labels, free_slots, load, draining, .. } = entry;
        let bid = Bid { node: node.clone(), epoch, labels, free_slots, load, draining };
        let node_now = Node { bid, beat_at: now, revision, gone_at: None, listed: true };
        self.nodes.insert(node, node_now);
    }

    /// The entry of a node expired or was deleted.
    pub fn removed(&mut self, node: &str, revision: Revision, now: Instant) {
        self.revision = self.revision.max(revision);
        if let Some(known) = self.nodes.get_mut(node)
            && known.revision < revision
        {
            known.revision = revision;
            known.gone_at.get_or_insert(now);
        }
    }

    pub fn standing(&self, node: &str, now: Instant) -> Standing {
        self.nodes.get(node).map_or(Standing::Unknown, |node| self.standing_of(node, now))
    }

    fn standing_of(&self, node: &Node, now: Instant) -> Standing {
        let epoch = node.bid.epoch;
        let since = node.beat_at + self.silent_after;
        match node.gone_at {
            Some(since) => Standing::Gone { epoch, since },
            None if now >= since => Standing::Silent { epoch, since },
            None => Standing::Present { epoch },
        }
    }

    /// Whether the lease of this epoch of a node is over, and the node has none.
    ///
    /// A gateway that has just begun to watch may be shown a state of the bucket from before the
    /// node joined, and then cannot tell.
    pub fn lease(&self, node: &str, epoch: Epoch) -> Lease {
        let over = match self.nodes.get(node) {
            Some(known) => known.bid.epoch >= epoch && known.gone_at.is_some(),
            None => self.listing == Listing::Complete && self.revision.0 >= epoch.0,
        };
        if over { Lease::Over } else { Lease::MayHold }
    }

    /// What present nodes said at their last beat, by name.
    pub fn present(&self, now: Instant) -> impl Iterator<Item = &Bid> {
        let is_present =
            move |node: &&Node| matches!(self.standing_of(node, now), Standing::Present { .. });
        self.nodes.values().filter(is_present).map(|node| &node.bid)
    }

    /// Every node ever seen, by name, with what it said last.
    pub fn all(&self, now: Instant) -> impl Iterator<Item = (&Bid, Standing)> {
        self.nodes.values().map(move |node| (&node.bid, self.standing_of(node, now)))
    }

    /// A node that is not gone stays.
    pub fn forget(&mut self, node: &str) {
        if self.nodes.get(node).is_some_and(|node| node.gone_at.is_some()) {
            self.nodes.remove(node);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(epoch: Option<u64>) -> Entry {
        let (node, labels) = ("a".to_owned(), BTreeMap::new());
        let epoch = epoch.map(Epoch);
        let server = String::new();
        Entry { node, server, epoch, labels, free_slots: 1, load: 0, draining: false }
    }

    fn joined_at(revision: u64, now: Instant) -> Presence {
        let mut presence = Presence::new(Duration::from_secs(1));
        presence.listed(now);
        presence.put(entry(None), Revision(revision), now);
        presence
    }

    #[test]
    fn a_silent_node_may_still_hold_its_lease() {
        let now = Instant::now();
        let presence = joined_at(5, now);
        let since = now + Duration::from_secs(1);
        assert_eq!(presence.standing("a", now), Standing::Present { epoch: Epoch(5) });
        assert_eq!(presence.standing("a", since), Standing::Silent { epoch: Epoch(5), since });
        assert_eq!(presence.lease("a", Epoch(5)), Lease::MayHold);
    }

    #[test]
    fn an_epoch_that_is_gone_does_not_come_back() {
        let now = Instant::now();
        let mut presence = joined_at(5, now);
        presence.removed("a", Revision(6), now);
        presence.put(entry(Some(5)), Revision(7), now);
        assert_eq!(presence.standing("a", now), Standing::Gone { epoch: Epoch(5), since: now });
        assert_eq!(presence.lease("a", Epoch(5)), Lease::Over);
        presence.put(entry(None), Revision(8), now);
        assert_eq!(presence.standing("a", now), Standing::Present { epoch: Epoch(8) });
    }

    #[test]
    fn a_node_that_has_joined_again_is_late_and_not_gone() {
        let now = Instant::now();
        let mut presence = joined_at(5, now);
        presence.removed("a", Revision(6), now);
        presence.put(entry(None), Revision(8), now);
        assert_eq!(presence.lease("a", Epoch(5)), Lease::MayHold);
        presence.removed("a", Revision(9), now);
        assert_eq!(presence.lease("a", Epoch(5)), Lease::Over);
    }

    #[test]
    fn a_listing_from_before_a_node_joined_says_nothing_about_it() {
        let now = Instant::now();
        let mut presence = joined_at(5, now);
        presence.list_again();
        presence.listed(now);
        assert_eq!(presence.standing("a", now), Standing::Present { epoch: Epoch(5) });
        assert_eq!(presence.lease("b", Epoch(9)), Lease::MayHold);
    }
}
