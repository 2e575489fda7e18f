//! Control groups of version 2, as far as killing a tree needs them: a leaf for each tree, below
//! our own cgroup.
//!
//! ```text
//!  our own cgroup ── lastbyte-PID-N (a branch: one engine) ──┬─ 0 (a leaf: one tree)
//!                                                            └─ 1 …
//! ```
//!
//! No controller is needed for that, and version 1 is never touched. Nothing here keeps a
//! descriptor but a branch, which holds a lock for as long as its engine lives.

mod branch;
mod claims;
mod leaf;
mod locate;
mod probe;

pub use branch::{Branch, sweep};
pub use claims::Claims;
pub use leaf::{Leaf, State, read_state, wait_until_empty};
pub use locate::{NoFolder, own_folder};
pub use probe::{NoLeaf, probe};
