//! Many machines behind one lastbyte.
//!
//! A **node** is a server that has joined the fleet, a **gateway** one that passes requests on to
//! nodes. Every decision is made here, without input or output and with the time as an argument:
//!
//! - `presence.rs`: which nodes a gateway knows, and whose lease is over.
//! - `placement.rs`: which nodes are asked for a bid, and which bid is best.
//! - `claim.rs`: one keyed start, as the gateway that makes it sees it.
//! - `fence.rs`: which starts a node makes, and which it will never make.
//!
//! `tests/simulation` runs all four against lost messages, partitions and crashes.

mod claim;
mod fence;
mod ids;
mod placement;
mod presence;

pub use claim::{
    Action, Answer, Claim, Event, Held, KeyOnNode, KeyedStart, NodeAnswer, NotPlaced, OnSilence,
    Wanted,
};
pub use fence::{Fence, Verdict};
pub use ids::{Epoch, Fingerprint, Revision};
pub use placement::{Bid, Place, nodes_to_ask, rank};
pub use presence::{Entry, Lease, Presence, Standing};
