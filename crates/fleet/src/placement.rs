//! Which nodes are asked for a bid, and which bid is best.
//!
//! A gateway asks a few nodes at random, not all: with bids of a moment ago, everybody's best node
//! would be the same one, and an auction among 1,000 nodes costs 1,000 answers. A node that refuses
//! is no error; the next best is tried.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Epoch;

/// What a node says about itself when it is asked to take a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bid {
    pub node: String,
    pub epoch: Epoch,
    pub labels: BTreeMap<String, String>,
    /// How many more processes it would run.
    pub free_slots: u32,
    /// Runnable threads for each thousand processors: at 1000 all of them are busy.
    pub load: u32,
    /// It starts nothing any more.
    pub draining: bool,
}

/// Where a process is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// On the node with this name.
    Node(String),
    /// On a node that has all of these labels. Without labels: anywhere.
    Labels(BTreeMap<String, String>),
}

impl Place {
    pub fn anywhere() -> Self {
        Self::Labels(BTreeMap::new())
    }

    /// Whether a node is in this place.
    pub fn has(&self, node: &str, labels: &BTreeMap<String, String>) -> bool {
        match self {
            Self::Node(name) => name == node,
            Self::Labels(wanted) => {
                wanted.iter().all(|(label, value)| labels.get(label) == Some(value))
            }
        }
    }
}

/// The bids that can be taken, the best first. `random` orders equal bids, so that gateways do not
/// all take the same node.
///
/// A node whose processors are all busy comes after all others. Among the rest the one with the most
/// free slots is best, because slots are counted now and load is an average of the past.
pub fn rank(bids: impl IntoIterator<Item = Bid>, place: &Place, random: u64) -> Vec<Bid> {
    let mut ranked: Vec<Bid> = bids.into_iter().filter(|bid| can_take(bid, place)).collect();
    ranked.sort_by_cached_key(|bid| {
        (bid.load >= 1000, Reverse(bid.free_slots), bid.load, shuffle_key(&bid.node, random))
    });
    // The network may have delivered a bid twice.
    let mut nodes = std::collections::HashSet::new();
    ranked.retain(|bid| nodes.insert(bid.node.clone()));
    ranked
}

fn can_take(bid: &Bid, place: &Place) -> bool {
    !bid.draining && bid.free_slots > 0 && place.has(&bid.node, &bid.labels)
}

/// At most `count` of the `present` nodes that are in this place and not draining, chosen by
/// `random`. How full they were at their last beat does not matter: their bids will say.
pub fn nodes_to_ask<'a>(
    present: impl IntoIterator<Item = &'a Bid>,
    place: &Place,
    count: usize,
    random: u64,
) -> Vec<&'a str> {
    let mut nodes: Vec<&str> = present
        .into_iter()
        .filter(|bid| !bid.draining && place.has(&bid.node, &bid.labels))
        .map(|bid| bid.node.as_str())
        .collect();
    nodes.sort_by_cached_key(|node| shuffle_key(node, random));
    nodes.truncate(count);
    nodes
}

/// Orders nodes at random, and the same for the same `random`.
fn shuffle_key(node: &str, random: u64) -> u64 {
    let mut hash = random ^ 0xcbf2_9ce4_8422_2325;
    for byte in node.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    // FNV leaves the high bits of short names alike, and they decide the order.
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bid() -> impl Strategy<Value = Bid> {
        (0..9u32, 0..4u32, 0..2_000u32, any::<bool>(), any::<bool>()).prop_map(
            |(node, free_slots, load, draining, gpu)| Bid {
                node: node.to_string(),
                epoch: Epoch(1),
                labels: BTreeMap::from([("gpu".to_owned(), gpu.to_string())]),
                free_slots,
                load,
                draining,
            },
        )
    }

    proptest! {
        #[test]
        fn a_ranked_bid_can_be_taken_and_each_node_is_there_once(
            bids in prop::collection::vec(bid(), 0..20), random: u64,
        ) {
            let place = Place::Labels(BTreeMap::from([("gpu".to_owned(), "true".to_owned())]));
            let ranked = rank(bids.clone(), &place, random);
            prop_assert!(ranked.iter().all(|bid| can_take(bid, &place)));
            let nodes = |bids: &[Bid]| {
                bids.iter().map(|bid| bid.node.clone()).collect::<std::collections::BTreeSet<_>>()
            };
            let takers: Vec<Bid> = bids.into_iter().filter(|bid| can_take(bid, &place)).collect();
            prop_assert_eq!(nodes(&ranked), nodes(&takers));
            prop_assert_eq!(nodes(&ranked).len(), ranked.len());
            let order = |bid: &Bid| (bid.load >= 1000, Reverse(bid.free_slots), bid.load);
            prop_assert!(ranked.is_sorted_by_key(order));
        }
    }
}
