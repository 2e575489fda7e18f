//! Starting a leader: a request in; an unreaped child and our ends of its pipes out.
//!
//! Children are made by threads that have a descriptor table of their own ([`Spawners`]): a
//! spawn in a shared table leaks its pipe ends into whatever other child is being made at that
//! instant, and such a pipe then has no end when its command ends. The answers, with their
//! descriptors, come back over one socket ([`Answers`]).

mod answers;
mod clone;
mod confine;
mod daemon;
mod queue;
mod request;
mod setup;
mod spawners;
mod table;

pub use answers::{Answer, Answers};
pub use clone::Mechanism;
pub(crate) use clone::{clone_into, clone_with};
pub use daemon::{Daemon, start_daemon};
pub use request::{Failure, Output, OutputEnds, Request, Spawned, Stdin, Step};
pub use spawners::Spawners;
