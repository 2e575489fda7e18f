//! Keeps other programs of the same user from tracing this one: its memory has tokens and secrets.

use rustix::process::{DumpableBehavior, set_dumpable_behavior};

/// Without `CAP_SYS_PTRACE` and the like, nobody can trace this process from now on, or see its memory, environment
/// or open files. It dumps no core either.
///
/// A child that shares this program's memory until it executes another cannot write its own
/// `/proc/self/uid_map` then, unless it is root: the kernel gives the files there to root.
pub fn become_untraceable() {
    // It cannot fail: the value is valid.
    _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}
