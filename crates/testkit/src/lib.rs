//! Fixtures for the tests of the other crates, and `testchild`, a program that misbehaves on
//! request.
//!
//! A test starts `testchild` with the actions it wants ([`argv`], [`script`]), passes it an
//! [`Anchor`], and waits for conditions ([`Anchor::wait_for`], [`eventually`]), never for a fixed
//! time. `src/bin/testchild/main.rs` describes the actions.
//!
//! A test that this user or this machine cannot run reports it with [`not_run`].

mod anchor;
mod condition;
mod fuzz;
mod namespace;
mod pattern;
mod procfs;
mod program;
mod requirements;

pub use anchor::{ANCHOR_VARIABLE, Anchor};
pub use condition::{PATIENCE, eventually};
pub use fuzz::{Corpus, fuzz, fuzz_inputs};
pub use namespace::{Reused, has_mount_namespaces, inside};
pub use pattern::{pattern, pattern_bytes};
pub use procfs::{SignalSets, children_of, is_alive, is_stopped, open_fds, open_targets};
pub use program::{argv, lastbyte, script, testchild};
pub use requirements::{as_many_as, free_port, has_cgroups, not_run};
