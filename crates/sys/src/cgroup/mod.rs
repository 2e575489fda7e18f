//! Version 2 control groups, as far as killing a tree needs them: one cgroup per tree, below our own
//! cgroup.
//!
//! ```text
//!  our own cgroup ── lastbyte-PID-N (a parent: one engine) ──┬─ 0 (a cgroup: one tree)
//!                                                            └─ 1 …
//! ```
//!
//! This needs no controller and never touches version 1. Only a parent keeps a descriptor open: it
//! holds a lock as long as its engine lives. Where our own cgroup accounts memory, those of trees can,
//! too (`memory`).

mod group;
mod locate;
mod memory;
mod parent;
mod probe;

pub use group::{Cgroup, CgroupState, read_state, wait_until_empty};
pub use locate::{NoFolder, own_folder};
pub use memory::account_memory;
pub use parent::{Claims, ParentCgroup, sweep};
pub use probe::{NoCgroup, probe};
