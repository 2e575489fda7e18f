//! Confines a command and all its children: prepared here, applied in the child between clone and
//! exec.
//!
//! What is allowed is decided elsewhere. A [`Confinement`] expresses it in the kernel's terms:
//! read-only [`Mounts`], a Landlock [`Ruleset`], a [`Filter`] of system calls. No descendant can
//! undo any of it.

mod bpf;
mod calls;
mod filter;
mod mark;
mod mounts;
mod probe;
mod root_entries;
mod ruleset;

use std::sync::Arc;

use rustix::thread::{CapabilitySet, CapabilitySets, capabilities};

pub use filter::{Filter, MetadataChanges, Network};
pub use mark::marked;
pub use mounts::{FilePlace, KeptFolder, Mounts, Namespaces};
pub use probe::probe;
pub(crate) use ruleset::Rulesets;
pub use ruleset::{Readable, Ruleset};

/// Everything that is done to a child, ready to use where nothing can be allocated.
#[derive(Debug, Clone)]
pub struct Confinement {
    /// `None` if namespaces are not available.
    pub mounts: Option<Mounts>,
    pub ruleset: Ruleset,
    /// The working directory; `None` if it does not exist, which entering it reports.
    pub cwd: Option<FilePlace>,
    pub filter: Arc<Filter>,
    pub root: RootUser,
}

/// Whether the child has the right to make user 0 an ordinary user for good. Without that right it
/// has no capability to lose either, and `no_new_privs` lets it gain none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RootUser {
    Disarm,
    Leave,
}

impl RootUser {
    /// What children of this program can do.
    pub fn for_own_children() -> Self {
        let may = |sets: CapabilitySets| sets.effective.contains(CapabilitySet::SETPCAP);
        if capabilities(None).is_ok_and(may) { Self::Disarm } else { Self::Leave }
    }
}
