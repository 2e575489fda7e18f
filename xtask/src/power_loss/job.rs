//! The commands: everything about one follows from its name, on both sides of the power loss.

use std::collections::BTreeMap;

use lastbyte_client::wire::{Process, StartRequest, StreamsAsked};

use crate::random::Random;

/// The label that has the name.
const LABEL: &str = "job";

pub(super) struct Job {
    /// Which boot it is of, and its number there.
    pub(super) name: String,
    pub(super) request: StartRequest,
    /// Where its output begins in the pattern.
    pub(super) base: u64,
    /// Of each stream; `None` if it writes until the power goes.
    pub(super) bytes: Option<u64>,
    pub(super) code: i32,
    /// Forgotten by its client once it has ended.
    pub(super) is_forgotten: bool,
}

impl Job {
    pub(super) fn new(seed: u64, boot: u64, nth: u64) -> Self {
        let mut random = Random::new(seed, (boot << 32) + nth);
        // No two processes write the same bytes.
        let base = (boot << 48) + (nth << 24);
        let name = format!("{boot}.{nth}");
        let mut request = StartRequest {
            labels: BTreeMap::from([(LABEL.into(), name.clone())]),
            key: random.percent(40).then(|| format!("key {name}")),
            ..StartRequest::default()
        };
        let (kind, code) = (random.between(0, 100), random.between(0, 100));
        let begin = format!("pattern-from {base}");
        let (actions, bytes) = match kind {
            0..10 => {
                let (first, pause) = (random.between(0, 9000), random.between(5, 200));
                let from = base + first;
                (format!("{begin} then write-bytes {first} then chatter {pause} {from}"), None)
            }
            10..25 => {
                let (piece, pause) = (random.between(1, 900), random.between(10, 300));
                let count = random.between(3, 25);
                let step = format!(" then write-bytes {piece} then sleep-ms {pause}");
                (begin + &step.repeat(count as usize), Some(piece * count))
            }
            25..35 => {
                request.streams = Some(StreamsAsked::Split);
                let count = random.between(1, 400);
                (format!("{begin} then alternate {count}"), Some(count))
            }
            _ => {
                let most = random.one_of(&[2, 100, 4097, 9000, 300_000]);
                let count = random.between(0, most);
                (format!("{begin} then write-bytes {count}"), Some(count))
            }
        };
        let actions = format!("/bin/testchild {actions} then exit {code}");
        request.command = Some(actions.split(' ').map(str::to_owned).collect());
        let (code, is_forgotten) = (code as i32, random.percent(60));
        Self { name, request, base, bytes, code, is_forgotten }
    }

    pub(super) fn from_name(seed: u64, name: &str) -> Option<Self> {
        let (boot, nth) = name.split_once('.')?;
        Some(Self::new(seed, boot.parse().ok()?, nth.parse().ok()?))
    }

    /// The job that a process is of.
    pub(super) fn from_process(seed: u64, process: &Process) -> Option<Self> {
        Self::from_name(seed, process.labels.get(LABEL)?)
    }
}
