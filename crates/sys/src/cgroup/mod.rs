//! Version 2 control groups: one cgroup per tree, below our own cgroup, to kill it and to limit it.
//!
//! ```text
//!  our own cgroup ── lastbyte-PID-N (a parent: one engine) ──┬─ 0 (a cgroup: one tree)
//!                                                            └─ 1 …
//! ```
//!
//! Killing needs no controller, and version 1 is never touched. Only a parent keeps a descriptor open:
//! it holds a lock as long as its engine lives. Where our own cgroup has controllers, those of trees can
//! have them, too (`controllers`), and limit what a tree uses (`limits`).

mod controllers;
mod group;
mod limits;
mod locate;
mod parent;
mod probe;

pub use controllers::{Controller, enable_controllers, offered};
pub use group::{Cgroup, CgroupState, read_state, wait_until_empty};
pub use limits::{CgroupLimits, OomKills};
pub use locate::{NoFolder, own_folder};
pub use parent::{Claims, ParentCgroup, sweep};
pub use probe::{NoCgroup, probe, probed_parent};
