//! A node: a journal that survives, a fence that does not, and beats.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use lastbyte_fleet::{
    Bid, Claim, Entry, Epoch, Fence, Fingerprint, KeyOnNode, NodeAnswer, Revision, Verdict,
};

use crate::world::{Broken, LEASE, SLOTS};

/// A process: its node and its number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Id(pub(crate) usize, pub(crate) usize);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    Running,
    Exited(u64),
    /// It died with its machine.
    Lost,
}

pub(crate) struct Node {
    number: usize,
    pub(crate) up: bool,
    fence: Fence,
    /// The revision of its entry, if no write of it is in doubt.
    pub(crate) entry_at: Option<Revision>,
    /// The request that it waits for, and when it was sent.
    pub(crate) waits_for: Option<(u64, u64)>,
    /// The epoch in the entry that it writes; none if it joins.
    pub(crate) writes: Option<Epoch>,
    journal: BTreeMap<usize, (usize, Fingerprint)>,
    pub(crate) processes: Vec<Status>,
    broken: Option<Broken>,
}

/// What a start has come to.
pub(crate) enum Fate {
    Start,
    Refuse,
    Fail,
}

impl Node {
    pub(crate) fn new(number: usize, broken: Option<Broken>) -> Self {
        Self {
            number,
            up: true,
            fence: new_fence(broken),
            entry_at: None,
            waits_for: None,
            writes: None,
            journal: BTreeMap::new(),
            processes: Vec::new(),
            broken,
        }
    }

    pub(crate) fn crash(&mut self, with_machine: bool) {
        self.up = false;
        self.fence = new_fence(self.broken);
        self.entry_at = None;
        self.waits_for = None;
        if with_machine {
            let running = self.processes.iter_mut().filter(|status| **status == Status::Running);
            running.for_each(|status| *status = Status::Lost);
        }
    }

    pub(crate) fn epoch(&self, now: Instant) -> Option<Epoch> {
        self.fence.epoch(now)
    }

    pub(crate) fn entry(&self, epoch: Option<Epoch>) -> Entry {
        Entry {
            node: self.number.to_string(),
            server: String::new(),
            epoch,
            labels: BTreeMap::new(),
            free_slots: self.free_slots(),
            load: 0,
            draining: false,
        }
    }

    /// The bucket has acknowledged an entry; in which epoch it was written.
    pub(crate) fn acknowledged(
        &mut self,
        epoch: Option<Epoch>,
        revision: Revision,
        sent_at: Instant,
        now: Instant,
    ) {
        self.entry_at = Some(revision);
        match epoch {
            None => self.fence.joined(Epoch(revision.0), sent_at),
            Some(_) => self.fence.renewed(sent_at, now),
        }
    }

    fn free_slots(&self) -> u32 {
        let running = self.processes.iter().filter(|status| **status == Status::Running).count();
        SLOTS.saturating_sub(running as u32)
    }

    pub(crate) fn bid(&self, now: Instant) -> Option<Bid> {
        let Entry { node, labels, free_slots, load, draining, .. } = self.entry(None);
        self.epoch(now).map(|epoch| Bid { node, epoch, labels, free_slots, load, draining })
    }

    /// The answer to a start; the process is new if it is the last one and was not there before.
    pub(crate) fn start(
        &mut self,
        key: usize,
        claim: &Claim,
        fate: Fate,
        now: Instant,
    ) -> NodeAnswer<Id> {
        if let Some((process, fingerprint)) = self.journal.get(&key) {
            let id = Id(self.number, *process);
            let same = *fingerprint == claim.fingerprint;
            return if same { NodeAnswer::Started(id) } else { NodeAnswer::Conflict(id) };
        }
        let nobody = Id(self.number, usize::MAX);
        match self.check(key, claim, now) {
            Verdict::Start => {}
            Verdict::Refused => return NodeAnswer::Refused(nobody),
            Verdict::Fenced(epoch) => return NodeAnswer::Fenced(epoch),
            Verdict::NotYet => return NodeAnswer::NotYet,
        }
        let has_room = self.free_slots() > 0;
        if has_room && matches!(fate, Fate::Start) {
            self.journal.insert(key, (self.processes.len(), claim.fingerprint.clone()));
            self.processes.push(Status::Running);
            return NodeAnswer::Started(Id(self.number, self.processes.len() - 1));
        }
        if self.broken != Some(Broken::RefusalForgotten) {
            self.fence.refuse(&key.to_string(), claim);
        }
        let fails = has_room && matches!(fate, Fate::Fail);
        if fails { NodeAnswer::Failed(nobody) } else { NodeAnswer::Refused(nobody) }
    }

    pub(crate) fn ask(&self, key: usize, claim: &Claim, now: Instant) -> KeyOnNode {
        if self.journal.contains_key(&key) {
            return KeyOnNode::Started;
        }
        match self.check(key, claim, now) {
            Verdict::Refused | Verdict::Fenced(_) => KeyOnNode::Never,
            Verdict::Start | Verdict::NotYet => KeyOnNode::NotYet,
        }
    }

    fn check(&self, key: usize, claim: &Claim, now: Instant) -> Verdict {
        let mut claim = claim.clone();
        if self.broken == Some(Broken::EpochIgnored)
            && let Some(own) = self.epoch(now)
        {
            claim.epoch = own;
        }
        self.fence.check(&key.to_string(), &claim, now)
    }

    pub(crate) fn has(&self, key: usize, process: usize) -> bool {
        self.journal.get(&key).is_some_and(|(there, _)| *there == process)
    }
}

fn new_fence(broken: Option<Broken>) -> Fence {
    let lease = if broken == Some(Broken::LeaseIgnored) { 1_000_000 } else { LEASE };
    // So few that a busy node runs out of them.
    Fence::new(Duration::from_millis(lease), 4)
}
