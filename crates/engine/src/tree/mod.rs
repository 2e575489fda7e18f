//! Who descends from a leader, and how they are reached.
//!
//! ```text
//!  Trees (found once) ──▶ Plot (before the clone) ──▶ Tree (with a leader)
//!    └─ Leaves (the pool) ──▶ Lease (a leaf, until its tree is empty)
//!         └─ Strays (who left one, looked for by all stops together)
//! ```
//!
//! Looking at a tree blocks for the time of a scan and belongs on a blocking thread. Nobody is
//! signalled by number: members are held by pidfd, so a signal reaches the process that was found
//! and no successor of its pid, or they are killed with their leaf.

mod kill;
mod lease;
mod leaves;
mod members;
mod port;
mod reach;
mod scan;
mod strays;

pub(crate) use kill::KillOnDrop;
pub(crate) use lease::Lease;
pub use members::Survivor;
pub(crate) use members::{Found, Tree};

pub use port::PortLook;
pub(crate) use reach::{Plot, Trees};
pub use reach::{Reach, ReachChoice};
pub(crate) use scan::with_survivors;
