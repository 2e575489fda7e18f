//! Many machines behind one lastbyte, over NATS.
//!
//! A **node** is a server that has joined the fleet: its native API is carried to it over the broker
//! (`carry.rs`, `node.rs`). A **gateway** is an HTTP server that passes requests on to nodes
//! (`gateway.rs`). `connect.rs`, `nkey.rs` and `subject.rs` know the broker.
//!
//! Decisions are made without input or output, with the time as an argument:
//!
//! - `presence.rs`: which nodes a gateway knows, and whose lease is over.
//! - `placement.rs`: which nodes are asked for a bid, and which bid is best.
//! - `claim.rs`: one keyed start, as the gateway that makes it sees it.
//! - `fence.rs`: which starts a node makes, and which it will never make.
//!
//! `tests/simulation` runs these four against lost messages, partitions and crashes.

mod carry;
mod claim;
mod connect;
mod fence;
mod gateway;
mod ids;
mod joined;
mod nkey;
mod node;
mod placement;
mod presence;
mod subject;

pub use claim::{
    Action, Answer, Claim, Event, Held, KeyOnNode, KeyedStart, NodeAnswer, NotPlaced, OnSilence,
    Wanted,
};
pub use connect::{Broker, JoinError};
pub use fence::{Fence, Verdict};
pub use gateway::Gateway;
pub use ids::{Epoch, Fingerprint, Revision};
pub use joined::Joined;
pub use node::{Node, NodeSettings, id_tag};
pub use placement::{Bid, Place, nodes_to_ask, rank};
pub use presence::{Entry, Lease, Presence, Standing};
pub use subject::is_node_name;
