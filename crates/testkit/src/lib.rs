//! Fixtures for the tests of the other crates, and `testchild`, a program that misbehaves on
//! request.
//!
//! A test starts `testchild` with the actions it wants ([`argv`], [`script`]), hands it an
//! [`Anchor`] to hold on to, and waits for conditions ([`Anchor::wait_for`], [`eventually`]),
//! never for a time. What a helper does is written in `src/bin/testchild/main.rs`.

mod anchor;
mod condition;
mod namespace;
mod pattern;
mod port;
mod procfs;
mod program;
mod signal_sets;

pub use anchor::{ANCHOR_VARIABLE, Anchor};
pub use condition::{PATIENCE, eventually};
pub use namespace::{Reused, inside};
pub use pattern::{pattern, pattern_bytes};
pub use port::free_port;
pub use procfs::{children_of, is_alive, is_stopped, open_fds, open_targets};
pub use program::{argv, script, testchild};
pub use signal_sets::SignalSets;
