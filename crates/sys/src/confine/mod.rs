//! Keeping a command and all its children from what they may not do: made ready here, applied in
//! the child between clone and exec.
//!
//! What is allowed is decided elsewhere. A [`Confinement`] says it in the kernel's terms: read-only
//! [`Mounts`], a Landlock [`Ruleset`], a [`Filter`] of system calls.
//! None of it can be taken off again, by any child of any depth.

mod calls;
mod filter;
mod machine;
mod mark;
mod mounts;
mod ruleset;
mod top;
mod trial;

use std::sync::Arc;

pub use filter::{Filter, Traffic, Upkeep};
pub use mark::marked;
pub use mounts::{Kept, Mounts, Namespaces};
pub(crate) use ruleset::Rulesets;
pub use ruleset::{Readable, Ruleset};
pub use trial::try_out;

/// All that is done to a child, ready to be used where nothing can be allocated.
#[derive(Debug, Clone)]
pub struct Confinement {
    /// `None` where namespaces are not to be had.
    pub mounts: Option<Mounts>,
    pub ruleset: Ruleset,
    pub filter: Arc<Filter>,
    pub root: Root,
}

/// Whether the child has the right to make user 0 a user like any other, for good. Without that
/// right it has no capability to lose either, and `no_new_privs` lets it gain none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Root {
    Disarm,
    Leave,
}

impl Root {
    /// What this program's children can do.
    pub fn of_own_children() -> Self {
        match crate::user::effective_capability(CAP_SETPCAP) {
            true => Self::Disarm,
            false => Self::Leave,
        }
    }
}

const CAP_SETPCAP: u32 = 8;
