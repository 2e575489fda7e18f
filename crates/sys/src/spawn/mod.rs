//! Starting a leader: takes a request and the child's ends of its pipes, returns an unreaped child.
//!
//! Threads with private descriptor tables ([`Spawners`]) create the children. A spawn in a shared
//! table leaks its pipe ends into any other child that is created at that instant; such a pipe then
//! stays open after its command has exited. The pipes are created in the program's table
//! ([`open_ends`]). The child's ends go to a spawner over a socket, and the pidfd comes back over
//! the same one ([`Answers`]).
//!
//! In this order: `ends` (pipes and ptys), `messages` (requests and answers, over the socket),
//! `spawners` (the threads) with `table` (their descriptors), `clone`, `setup` (the child between
//! clone and exec) with `confine` (what it gives up there), `answers`. `daemon` starts a process that
//! is not a child.

mod answers;
mod clone;
mod confine;
mod daemon;
mod ends;
mod messages;
mod request;
mod setup;
mod spawners;
mod table;

pub use answers::{Answer, Answers, Spawned, Unheld};
pub use clone::Mechanism;
pub(crate) use clone::{open_cgroup, try_clone};
pub use daemon::{Daemon, start_daemon};
pub use ends::{ChildEnds, OurEnds, OutputEnds, open_ends};
pub use request::{Failure, Output, Request, Stdin, Step};
pub use spawners::Spawners;
