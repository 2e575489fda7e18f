//! Descriptor limits for this program and for its children.
//!
//! A server needs more than the usual soft limit, which is low for the sake of programs that use
//! `select`. Its children may be such programs, so they get the limit this program was started
//! with.

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Soft and hard limit, in the kernel's layout.
pub(crate) type SoftAndHard = [u64; 2];

/// The limits this program was started with, once it has raised them.
static BEFORE: OnceLock<SoftAndHard> = OnceLock::new();

/// Raises this program's soft limit to the hard limit. Its children keep the earlier limit.
pub fn raise() {
    let limit = getrlimit(Resource::Nofile);
    let number = |limit: Option<u64>| limit.unwrap_or(u64::MAX);
    BEFORE.get_or_init(|| [number(limit.current), number(limit.maximum)]);
    // If the kernel refuses, the limit stays as it was.
    _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// The soft limit of this program; `None` if unlimited.
pub fn own() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// The soft limit that [`raise`] gives this program; `None` if unlimited.
pub fn raised() -> Option<u64> {
    getrlimit(Resource::Nofile).maximum
}

/// The limits for a child; `None` if it inherits this program's.
pub(crate) fn for_children() -> Option<SoftAndHard> {
    BEFORE.get().copied()
}
