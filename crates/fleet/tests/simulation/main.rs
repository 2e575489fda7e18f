//! A fleet in one thread and no real time: gateways, nodes, a replicated bucket and a network that
//! loses, doubles, delays and reorders, with partitions and crashes, all from one seed.
//!
//! Checked at each start: the key has one start, and one more for each replacement that was granted;
//! and the claim in the bucket is the one it was started with. Checked at each answer: an acknowledged
//! process exists, and an ending is the node's own. Checked at the end, after everything is healed:
//! every key is settled, and every acknowledged process is found.
//!
//! `LASTBYTE_TEST_FLEET_SEEDS=10000 cargo nextest run -p lastbyte-fleet all_seeds` runs that many.

mod bucket;
mod figures;
mod gateway;
mod node;
mod random;
mod world;

use std::collections::BTreeMap;

use world::{Broken, Setup, World};

fn setup(seed: u64, broken: Option<Broken>) -> Setup {
    Setup { seed, nodes: 5, gateways: 3, clients: 24, keys: 12, asked: 3, faults: true, broken }
}

/// How many seeds the ordinary tests run.
const SEEDS: u64 = 200;

/// How many seeds a broken rule may need to be noticed.
const SEEDS_TO_NOTICE: u64 = 2_000;

#[test]
fn all_seeds_keep_the_promises() {
    let seeds = std::env::var("LASTBYTE_TEST_FLEET_SEEDS")
        .map_or(SEEDS, |seeds| seeds.parse().expect("LASTBYTE_TEST_FLEET_SEEDS is a number"));
    let (mut starts, mut replacements) = (0, 0);
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for seed in 0..seeds {
        let mut world = World::new(setup(seed, None));
        world.run();
        assert!(world.violations.is_empty(), "seed {seed}: {:#?}", world.violations);
        starts += world.starts();
        replacements += world.replacements();
        world.counts.iter().for_each(|(what, count)| *counts.entry(what).or_default() += count);
    }
    println!("{seeds} seeds: {starts} starts, {replacements} replacements, {counts:#?}");
    // What never happens is not tested.
    assert!(replacements > 0, "no claim was replaced");
    for answer in ["started", "unknown", "conflict", "failed", "not placed"] {
        assert!(counts.contains_key(format!("answered {answer}").as_str()), "never {answer}");
    }
}

/// The first seed at which a broken rule is noticed, by a message with these words.
#[expect(clippy::print_stdout, reason = "the seed is worth knowing")]
fn check_noticed(broken: Broken, words: &str) {
    let noticed = (0..SEEDS_TO_NOTICE).find_map(|seed| {
        let mut world = World::new(setup(seed, Some(broken)));
        world.run();
        let found = world.violations.iter().find(|violation| violation.contains(words))?;
        Some(format!("{broken:?}: seed {seed}: {found}"))
    });
    println!(
        "{}",
        noticed.unwrap_or_else(|| panic!("{broken:?} is not noticed in {SEEDS_TO_NOTICE} seeds"))
    );
}

#[test]
fn a_skipped_claim_is_noticed() {
    check_noticed(Broken::ClaimSkipped, "was started 2 times, 1 allowed");
}

#[test]
fn an_ignored_epoch_is_noticed() {
    check_noticed(Broken::EpochIgnored, "was started 2 times, 1 allowed");
}

#[test]
fn a_trusted_ambiguous_answer_is_noticed() {
    check_noticed(Broken::AmbiguousTrusted, "was started 2 times, 1 allowed");
}

#[test]
fn a_forgotten_refusal_is_noticed() {
    check_noticed(Broken::RefusalForgotten, "was started 2 times, 1 allowed");
}

#[test]
fn an_ignored_lease_is_noticed() {
    check_noticed(Broken::LeaseIgnored, "but the claim is");
}

#[test]
fn an_invented_ending_is_noticed() {
    check_noticed(Broken::EndingInvented, "was reported Lost");
}
