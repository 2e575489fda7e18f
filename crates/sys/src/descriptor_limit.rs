//! How many descriptors this program may have, and its children.
//!
//! A server needs more than the usual soft limit, which is low for programs that wait by `select`.
//! Its children are such programs: they get the limit that this one was started with.

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// As the kernel takes it: soft and hard.
pub(crate) type Limits = [u64; 2];

/// What this program was started with, once it has raised it.
static BEFORE: OnceLock<Limits> = OnceLock::new();

/// Lets this program have as many as it may, and its children as many as before.
pub fn raise() {
    let limit = getrlimit(Resource::Nofile);
    let number = |limit: Option<u64>| limit.unwrap_or(u64::MAX);
    BEFORE.get_or_init(|| [number(limit.current), number(limit.maximum)]);
    // What is not allowed stays as it was.
    _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// What a child is to have; `None` for what this program has.
pub(crate) fn of_children() -> Option<Limits> {
    BEFORE.get().copied()
}
