//! One keyed start, as the gateway that makes it sees it.
//!
//! A key is claimed in a replicated bucket before anything is started. The claim names a node, its
//! epoch and the number of the attempt; only a write on the revision of a claim changes it, so each
//! attempt is meant for one epoch of one node.
//!
//! ```text
//! bids ─▶ create ─written──────────────────▶ start on the node ─▶ started, failed, conflict
//!           │ exists, ambiguous                  ▲     │ refused, fenced, or silent + replace
//!           ▼                                    │     ▼
//!          read ─ a claim of this launch ────────┘   move to the next bid ─written─▶ start there
//!           ├─── a claim of another launch ─▶ ask the node ─▶ conflict, or move if nothing ran
//!           └─── none ─▶ create                        │ exists, ambiguous ─▶ read
//! ```
//!
//! Any gateway may go on with any claim: the node's journal makes a repeated start harmless. So an
//! ambiguous answer is never interpreted. It is read back, and what is there is done.
//!
//! A claim moves to another attempt for three reasons. The node *refused* the attempt, or answered
//! from a *newer epoch* without having the key: both prove that it never runs ([`Fence`]). Or the
//! node is *silent*, its lease is over, and the caller has said `replace`: that proves only that the
//! node will not start it any more. It may have started it before, and then it still runs, or ran,
//! beside the replacement.
//!
//! What follows, and what does not:
//!
//! - One key is started at most once, and once more for each granted replacement.
//! - Whether a silent node started a process cannot be known before it is back. When it is, the
//!   process is in its journal and in its lists, but the key leads to the replacement.
//! - A key is kept as long as its process, as on one node. A node whose state folder was deleted or
//!   restored from a copy denies what it has started; it must join under another name.
//! - If the bucket forgets an acknowledged write, a second claim of the same key can be made.
//!
//! [`Fence`]: crate::Fence

use serde::{Deserialize, Serialize};

use crate::{Bid, Epoch, Fingerprint, Lease, Revision};

/// Which epoch of which node may start a key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Claim {
    pub node: String,
    pub epoch: Epoch,
    pub fingerprint: Fingerprint,
    /// 1, and one more each time the claim moves.
    pub attempt: u32,
    /// How many of the attempts before this one were replaced: they may have started the process.
    pub replaced: u32,
}

/// A claim as it is in the bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    pub claim: Claim,
    pub revision: Revision,
}

/// What a caller wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    pub fingerprint: Fingerprint,
    pub on_silence: OnSilence,
    /// After so many actions the answer is *unknown*.
    pub patience: u32,
}

/// What happens when the node that has the claim is silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnSilence {
    AnswerUnknown,
    /// The caller accepts that the process may run twice.
    Replace,
}

/// What happened. Answers to anything but the last action must not be passed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event<B> {
    /// The bids for this start, best first.
    Bids(Vec<Bid>),
    /// The write was acknowledged.
    Written(Revision),
    /// The write was refused: the key exists, or is at another revision.
    Exists,
    /// The bucket did not answer in time, or not clearly.
    Ambiguous,
    /// What was read.
    Read(Option<Held>),
    Node(NodeAnswer<B>),
    Key(KeyOnNode),
    /// The node did not answer in time; its lease by [`Presence::lease`](crate::Presence::lease).
    Silent(Lease),
}

/// What a node answers to a start, with the body of its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeAnswer<B> {
    /// The key has this process, started now or before.
    Started(B),
    /// The key has a process of another launch.
    Conflict(B),
    /// It could not be started anywhere, and nothing ran: no such program, say.
    Failed(B),
    /// The node does not want it, and nothing ran.
    Refused(B),
    /// [`Verdict::Fenced`](crate::Verdict::Fenced)
    Fenced(Epoch),
    /// [`Verdict::NotYet`](crate::Verdict::NotYet)
    NotYet,
}

/// What a node answers when it is asked about the key of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyOnNode {
    /// It is in the journal.
    Started,
    /// It is not, and this attempt will never be started: refused or fenced.
    Never,
    /// It is not, and may still be.
    NotYet,
}

/// What the gateway has to do next. The answer comes as an [`Event`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action<B> {
    AskForBids,
    /// Write the claim if the key does not exist.
    Create(Claim),
    /// Write the claim if the key is still at this revision.
    Move {
        claim: Claim,
        from: Revision,
    },
    /// Read the claim of the key.
    Read,
    /// Start the process on the claim's node, with the claim.
    Start(Claim),
    /// Ask the claim's node about the key.
    Ask(Claim),
    /// Answer the caller. Nothing follows.
    Answer(Answer<B>),
}

/// What the caller is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer<B> {
    Started {
        claim: Claim,
        body: B,
    },
    /// The process was perhaps started, on the node of this claim if there is one.
    Unknown(Option<Claim>),
    /// The key belongs to another launch; with the node's answer, if it was the node that said so.
    Conflict(Option<B>),
    /// This attempt ran nothing, and the same would happen anywhere.
    Failed {
        claim: Claim,
        body: B,
    },
    /// This call has started nothing, and no attempt was replaced.
    NotPlaced(NotPlaced<B>),
}

/// Why no node has started it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotPlaced<B> {
    NoBids,
    /// Every bidder refused; the last one with these words.
    Refused(B),
}

/// One call of one caller.
#[derive(Debug)]
pub struct KeyedStart<B> {
    wanted: Wanted,
    bids: Vec<Bid>,
    /// How often bids may be asked for again.
    auctions_left: u32,
    refusal: Option<B>,
    /// The last claim that was read, or sent to be written.
    claim: Option<Claim>,
    state: State,
}

#[derive(Debug, Clone)]
enum State {
    /// For a new claim, or for one that has to move.
    Bidding(Option<(Held, Reason)>),
    Creating(Claim),
    Moving(Claim),
    Reading,
    Starting(Held),
    Asking(Held),
    Answered,
}

/// Why a claim moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    /// The attempt never runs.
    NeverRuns,
    /// The caller replaces a silent node.
    Replaced,
}

impl<B> KeyedStart<B> {
    /// The start, and what to do first.
    pub fn new(wanted: Wanted) -> (Self, Action<B>) {
        let state = State::Bidding(None);
        let start =
            Self { wanted, bids: Vec::new(), auctions_left: 1, refusal: None, claim: None, state };
        (start, Action::AskForBids)
    }

    /// What to do next.
    pub fn on(&mut self, event: Event<B>) -> Action<B> {
        let action = self.next(event);
        if matches!(action, Action::Answer(_)) {
            self.state = State::Answered;
            return action;
        }
        if self.wanted.patience == 0 {
            return self.give_up();
        }
        self.wanted.patience -= 1;
        action
    }

    /// The caller does not wait any longer.
    pub fn give_up(&mut self) -> Action<B> {
        self.state = State::Answered;
        Action::Answer(Answer::Unknown(self.claim.take()))
    }

    fn next(&mut self, event: Event<B>) -> Action<B> {
        match (self.state.clone(), event) {
            (State::Bidding(moving), Event::Bids(bids)) => {
                self.bids = bids;
                match moving {
                    // Also the same epoch of the same node: it may have room for another attempt.
                    Some((held, reason)) => self.move_to_best_bid(held, reason),
                    // A key that was started before is found also when no node has room.
                    None if self.bids.is_empty() => self.read(),
                    None => self.create(),
                }
            }
            (State::Creating(claim) | State::Moving(claim), Event::Written(revision)) => {
                self.start(Held { claim, revision })
            }
            (State::Creating(_) | State::Moving(_), Event::Exists | Event::Ambiguous)
            | (State::Reading, Event::Ambiguous) => self.read(),
            (State::Reading, Event::Read(found)) => self.on_read(found),
            (State::Starting(held), Event::Node(answer)) => self.on_node(held, answer),
            (State::Starting(held), Event::Silent(lease)) => self.on_silence(held, lease),
            (State::Asking(held), Event::Key(KeyOnNode::Never)) if held.claim.replaced == 0 => {
                self.move_on(held, Reason::NeverRuns)
            }
            (State::Asking(_), Event::Key(_) | Event::Silent(_)) => {
                Action::Answer(Answer::Conflict(None))
            }
            // An answer to something else than was asked: nothing can be concluded.
            _ => self.give_up(),
        }
    }

    fn on_read(&mut self, found: Option<Held>) -> Action<B> {
        match found {
            None => self.create(),
            Some(held) if held.claim.fingerprint == self.wanted.fingerprint => self.start(held),
            Some(held) => {
                let claim = self.remember(&held.claim);
                self.state = State::Asking(held);
                Action::Ask(claim)
            }
        }
    }

    fn on_node(&mut self, held: Held, answer: NodeAnswer<B>) -> Action<B> {
        match answer {
            NodeAnswer::Started(body) => {
                Action::Answer(Answer::Started { claim: held.claim, body })
            }
            NodeAnswer::Conflict(body) => Action::Answer(Answer::Conflict(Some(body))),
            NodeAnswer::Failed(body) => Action::Answer(Answer::Failed { claim: held.claim, body }),
            NodeAnswer::Refused(body) => {
                self.refusal = Some(body);
                self.move_on(held, Reason::NeverRuns)
            }
            NodeAnswer::Fenced(epoch) if epoch > held.claim.epoch => {
                self.move_on(held, Reason::NeverRuns)
            }
            // It has not heard of its own epoch yet, or is joining again.
            NodeAnswer::Fenced(_) | NodeAnswer::NotYet => self.start(held),
        }
    }

    fn on_silence(&mut self, held: Held, lease: Lease) -> Action<B> {
        match (lease, self.wanted.on_silence) {
            (Lease::Over, OnSilence::Replace) => self.move_on(held, Reason::Replaced),
            (Lease::Over, OnSilence::AnswerUnknown) => {
                Action::Answer(Answer::Unknown(Some(held.claim)))
            }
            (Lease::MayHold, _) => self.start(held),
        }
    }

    fn create(&mut self) -> Action<B> {
        let Some(claim) = self.claim_of_best_bid(1, 0) else { return self.not_placed() };
        self.state = State::Creating(claim.clone());
        Action::Create(claim)
    }

    fn read(&mut self) -> Action<B> {
        self.state = State::Reading;
        Action::Read
    }

    fn start(&mut self, held: Held) -> Action<B> {
        let claim = self.remember(&held.claim);
        self.state = State::Starting(held);
        Action::Start(claim)
    }

    /// Moves the claim to the best bid of another node, or of a newer epoch of this one.
    fn move_on(&mut self, held: Held, reason: Reason) -> Action<B> {
        let Claim { node, epoch, .. } = &held.claim;
        self.bids.retain(|bid| bid.node != *node || bid.epoch > *epoch);
        if self.bids.is_empty() && self.auctions_left > 0 {
            self.auctions_left -= 1;
            self.state = State::Bidding(Some((held, reason)));
            return Action::AskForBids;
        }
        self.move_to_best_bid(held, reason)
    }

    fn move_to_best_bid(&mut self, held: Held, reason: Reason) -> Action<B> {
        let replaced = match reason {
            Reason::NeverRuns => held.claim.replaced,
            Reason::Replaced => held.claim.replaced + 1,
        };
        if let Some(claim) = self.claim_of_best_bid(held.claim.attempt + 1, replaced) {
            self.state = State::Moving(claim.clone());
            return Action::Move { claim, from: held.revision };
        }
        match replaced {
            0 => self.not_placed(),
            _ => Action::Answer(Answer::Unknown(Some(held.claim))),
        }
    }

    fn claim_of_best_bid(&mut self, attempt: u32, replaced: u32) -> Option<Claim> {
        let Bid { node, epoch, .. } = self.bids.first()?.clone();
        let fingerprint = self.wanted.fingerprint.clone();
        Some(self.remember(&Claim { node, epoch, fingerprint, attempt, replaced }))
    }

    fn remember(&mut self, claim: &Claim) -> Claim {
        self.claim = Some(claim.clone());
        claim.clone()
    }

    fn not_placed(&mut self) -> Action<B> {
        let why = self.refusal.take().map_or(NotPlaced::NoBids, NotPlaced::Refused);
        Action::Answer(Answer::NotPlaced(why))
    }
}
