//! Core dumps: none of this program, because its memory has tokens and secrets.
//!
//! Its children are other programs, so they get the limit that this program was started with.

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::descriptor_limit::SoftAndHard;

/// The limits this program was started with, if it has changed them.
static BEFORE: OnceLock<SoftAndHard> = OnceLock::new();

/// Forbids core dumps of this program. A kernel that pipes them to a program heeds this, too.
pub fn forbid() {
    let limit = getrlimit(Resource::Core);
    if limit.current == Some(0) {
        return;
    }
    let number = |limit: Option<u64>| limit.unwrap_or(u64::MAX);
    BEFORE.get_or_init(|| [number(limit.current), number(limit.maximum)]);
    // Lowering a limit is always permitted.
    _ = setrlimit(Resource::Core, Rlimit { current: Some(0), ..limit });
}

/// The limits for a child; `None` if it inherits this program's.
pub(crate) fn for_children() -> Option<SoftAndHard> {
    BEFORE.get().copied()
}
