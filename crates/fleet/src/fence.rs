//! Which starts a node makes, and which it will never make.
//!
//! Before it asks the fence, a node looks into its journal: a key that is there is answered with its
//! process, or as a conflict, whatever the epoch. A key that is not there is started only for the
//! node's own epoch, only while its lease holds, and not if that attempt was refused before. That
//! makes three answers final, so that a gateway may move a claim on:
//!
//! - *refused*: this attempt will not be started in this epoch, also not by a copy of the request
//!   that is still under way;
//! - *fenced*: the epoch is over and the key was not started in it;
//! - *gone* from the presence bucket: the lease ended before the entry did.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::{Claim, Epoch};

/// What a node does with a start whose key is not in its journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It may start it. If it does not, it calls [`Fence::refuse`] before it answers.
    Start,
    /// It has refused this attempt, or a later one.
    Refused,
    /// The claim is for an epoch that is over. This is the node's own.
    Fenced(Epoch),
    /// The node has no epoch or no lease now, or the claim is for an epoch that it does not know of
    /// yet. Nothing is decided.
    NotYet,
}

/// What a node remembers of its own epoch. It is lost in a crash, which ends the epoch.
#[derive(Debug)]
pub struct Fence {
    lease: Duration,
    most_refusals: usize,
    stay: Option<Stay>,
}

#[derive(Debug)]
struct Stay {
    epoch: Epoch,
    lease_until: Instant,
    /// The last attempt of each key that was refused.
    refused: HashMap<String, u32>,
}

impl Fence {
    /// `lease` counts from the moment a beat is sent. It must be shorter than entries live in the
    /// presence bucket, by more than clocks of servers and nodes differ in that time. A node with
    /// more than `most_refusals` needs a new epoch.
    pub fn new(lease: Duration, most_refusals: usize) -> Self {
        Self { lease, most_refusals, stay: None }
    }

    /// The node has joined: the bucket acknowledged a write that was sent then.
    pub fn joined(&mut self, epoch: Epoch, sent_at: Instant) {
        let lease_until = sent_at + self.lease;
        self.stay = Some(Stay { epoch, lease_until, refused: HashMap::new() });
    }

    /// The bucket acknowledged a beat that was sent then. A lease that has ended stays so: the entry
    /// may have expired before the beat came.
    pub fn renewed(&mut self, sent_at: Instant, now: Instant) {
        if let Some(stay) = self.stay.as_mut().filter(|stay| now < stay.lease_until) {
            stay.lease_until = stay.lease_until.max(sent_at + self.lease);
        }
    }

    /// The epoch, if its lease holds. Without one the node must join again.
    pub fn epoch(&self, now: Instant) -> Option<Epoch> {
        self.stay.as_ref().filter(|stay| now < stay.lease_until).map(|stay| stay.epoch)
    }

    /// What to do with a start whose key is not in the journal.
    pub fn check(&self, key: &str, claim: &Claim, now: Instant) -> Verdict {
        let Some(stay) = &self.stay else { return Verdict::NotYet };
        if claim.epoch < stay.epoch {
            return Verdict::Fenced(stay.epoch);
        }
        if claim.epoch > stay.epoch || now >= stay.lease_until {
            return Verdict::NotYet;
        }
        match stay.refused.get(key) {
            Some(refused) if claim.attempt <= *refused => Verdict::Refused,
            _ => Verdict::Start,
        }
    }

    /// The node will not start this attempt: it has no room, or the start failed and nothing ran.
    /// A fence that is full ends the epoch instead, which ends every attempt meant for it.
    pub fn refuse(&mut self, key: &str, claim: &Claim) {
        let Some(stay) = self.stay.as_mut().filter(|stay| stay.epoch == claim.epoch) else {
            return;
        };
        if stay.refused.len() >= self.most_refusals && !stay.refused.contains_key(key) {
            self.stay = None;
            return;
        }
        let refused = stay.refused.entry(key.to_owned()).or_insert(claim.attempt);
        *refused = claim.attempt.max(*refused);
    }
}
