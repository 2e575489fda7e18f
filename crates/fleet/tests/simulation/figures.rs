//! The counts in docs/scale.md: messages for a start, and how evenly bids spread processes.

use std::collections::BTreeMap;

use lastbyte_fleet::{Bid, Epoch, Place, nodes_to_ask, rank};

use crate::random::Random;
use crate::world::{Setup, World};

/// Messages for each of 30 starts, in a fleet where nothing goes wrong: for bids, claim and start.
fn messages(nodes: usize, asked: usize) -> [u64; 3] {
    // So many keys that no two clients have the same one.
    let (clients, keys) = (30, 1_000_000);
    let setup =
        Setup { seed: 1, nodes, gateways: 3, clients, keys, asked, faults: false, broken: None };
    let mut world = World::new(setup);
    world.run();
    assert_eq!(world.violations, Vec::<String>::new());
    assert_eq!(world.starts(), clients);
    ["bids", "claim", "start"].map(|what| {
        assert_eq!(world.counts[what] % clients as u64, 0, "the same for each start");
        world.counts[what] / clients as u64
    })
}

#[test]
fn messages_of_a_start_depend_on_the_nodes_asked_and_not_on_the_fleet() {
    for nodes in [10, 100, 1_000] {
        assert_eq!(messages(nodes, 3), [6, 2, 2], "{nodes} nodes");
    }
    for nodes in [10, 100, 1_000] {
        assert_eq!(messages(nodes, nodes), [2 * nodes as u64, 2, 2], "all of {nodes} nodes");
    }
}

/// The most and the fewest processes of a node after 100 for each of 200 nodes were placed, none of
/// which ends. `in_flight`: so many are placed at once, on bids that do not know of each other.
fn spread(asked: usize, in_flight: usize) -> (u32, u32) {
    const NODES: usize = 200;
    let mut random = Random::new(1);
    let mut bids: Vec<Bid> = (0..NODES).map(bid).collect();
    let numbers: BTreeMap<String, usize> =
        bids.iter().enumerate().map(|(number, bid)| (bid.node.clone(), number)).collect();
    let place = Place::anywhere();
    for _ in 0..NODES * 100 / in_flight {
        let chosen: Vec<usize> = (0..in_flight)
            .map(|_| {
                let nodes = nodes_to_ask(&bids, &place, asked, random.next());
                let answers = nodes.iter().map(|node| bids[numbers[*node]].clone());
                numbers[&rank(answers, &place, random.next())[0].node]
            })
            .collect();
        chosen.iter().for_each(|number| bids[*number].free_slots -= 1);
    }
    let processes = || bids.iter().map(|bid| SLOTS - bid.free_slots);
    (processes().min().unwrap_or_default(), processes().max().unwrap_or_default())
}

const SLOTS: u32 = 100_000;

fn bid(number: usize) -> Bid {
    Bid {
        node: format!("node-{number}"),
        epoch: Epoch(1),
        labels: BTreeMap::new(),
        free_slots: SLOTS,
        load: 0,
        draining: false,
    }
}

#[test]
fn three_bids_spread_processes_evenly() {
    let figures = [(1, 1), (2, 1), (3, 1), (5, 1), (3, 100), (200, 100)]
        .map(|(asked, in_flight)| (asked, in_flight, spread(asked, in_flight)));
    let want = [(66, 128), (97, 102), (98, 101), (99, 101), (98, 103), (97, 116)];
    assert_eq!(figures.map(|(.., processes)| processes), want);
}
