//! Core dumps: none of this program, because its memory has tokens and secrets.
//!
//! Its children are other programs, so they get the limit that this program was started with.

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::descriptor_limit::SoftAndHard;

/// The limits this program was started with, if it has changed them.
static BEFORE: OnceLock<SoftAndHard> = OnceLock::new();

/// Of one byte: less than any file with a dump has. A kernel that pipes dumps to a program ignores every
/// limit but this one, which it takes for a dump of that program itself.
const NONE: u64 = 1;

/// Forbids core dumps of this program.
pub fn forbid() {
    let limit = getrlimit(Resource::Core);
    let is_permitted = limit.maximum.is_none_or(|most| most >= NONE);
    if limit.current == Some(NONE) || !is_permitted {
        return;
    }
    let number = |limit: Option<u64>| limit.unwrap_or(u64::MAX);
    BEFORE.get_or_init(|| [number(limit.current), number(limit.maximum)]);
    // It cannot fail: the hard limit is not lower.
    _ = setrlimit(Resource::Core, Rlimit { current: Some(NONE), ..limit });
}

/// The limits for a child; `None` if it inherits this program's.
pub(crate) fn for_children() -> Option<SoftAndHard> {
    BEFORE.get().copied()
}
