//! System calls behind safe functions: spawning, pidfds, groups, pipes, `/proc`.
//!
//! This crate contains system calls and nothing else: no policy, no async, no formats. It alone may
//! use `unsafe`, because a child between clone and exec, a private descriptor table and `waitid`
//! with resource usage have no safe form elsewhere.
#![allow(unsafe_code, reason = "this crate exists to wrap system calls")]

#[cfg(not(target_os = "linux"))]
compile_error!("lastbyte runs on Linux; other systems need their own spawn, child and procfs");

pub mod adopted;
pub mod blocked;
pub mod cgroup;
mod child;
pub mod child_exits;
pub mod confine;
pub mod core_dumps;
pub mod descriptor_limit;
pub mod file;
mod leaders;
pub mod leftover_reader;
pub mod listen_fds;
pub mod listening;
pub mod memory;
pub mod memory_file;
pub mod oom;
pub mod orphans;
mod own_program;
pub mod own_signals;
pub mod packets;
pub mod pipe;
pub mod probe;
pub mod process_usage;
pub mod procfs;
pub mod pty;
mod raw;
pub mod readiness;
pub mod registry;
pub mod resolve;
pub mod rlimits;
mod signal;
pub mod socket;
pub mod spawn;
pub mod stand_in;
pub mod tag;
pub mod time;
pub mod untraceable;
pub mod user;
pub mod worker;

pub use child::{
    Child, ExitWatch, Exited, Found, Lost, Status, Usage, exceeds_own_peak, signal_unreaped_group,
};
pub use own_program::OwnProgram;
pub use rustix::io::Errno;
pub use signal::{Signal, UnknownSignal};
