//! The descendants of a leader, and how to reach them.
//!
//! ```text
//!  Trees (found once) ──▶ Seed (before the clone) ──▶ Tree (with a leader)
//!    └─ CgroupPool (the pool) ──▶ Lease (a cgroup, until its tree is empty)
//!
//!  Census (one scan: which tree each process belongs to, by the Marks of all trees)
//!    ├─ Scans (shared by all stops that wait for one)
//!    └─ ForkChain (orphans that are too short-lived for a scan)
//!
//!  BlockingQueue (the rest of what stops do on blocking threads)
//! ```
//!
//! Reading a tree blocks for the time of a scan and belongs on a blocking thread. Signals are never
//! sent by number: members are opened by pidfd, so a signal reaches the process that was found and
//! no later process with its pid. Or they are killed with their cgroup.

mod blocking_queue;
mod calls;
mod census;
mod cgroup_pool;
mod fork_chain;
mod input;
mod kill;
mod lease;
mod marks;
mod members;
pub(crate) mod orphans;
mod port;
mod reach;
mod scans;

pub(crate) use census::{Appeared, TreeView, with_survivors};
pub(crate) use fork_chain::{Caught, ForkChain};
pub(crate) use input::InputEnd;
pub use input::{InputKind, InputReader, InputState};
pub(crate) use kill::KillOnDrop;
pub(crate) use lease::Lease;
pub use members::Survivor;
pub(crate) use members::{Members, Target, Tree, stats_in};
pub use port::PortState;
pub use reach::{Reach, ReachChoice};
pub(crate) use reach::{Seed, Trees};
