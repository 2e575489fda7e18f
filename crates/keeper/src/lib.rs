//! What must survive a crash of the server.
//!
//! The server is three processes. The worker does all the work. The keeper is its parent: it starts
//! another worker when one dies, keeps the exit statuses of the dead worker's children, and has the
//! listeners and the lock of the state directory. The stand-in shares the worker's descriptor table
//! and sleeps, so that every pipe stays open when the worker dies.
//!
//! `keeper.rs` is the keeper's loop and `machine.rs` what it decides, without a system call;
//! `slots.rs` is what it does for the dead worker's processes and `stand_ins.rs` for their
//! descriptors. `joined.rs` is the worker's side, `message.rs` what the two say to each other. The
//! memory that they share is the registry of the `sys` crate.
//!
//! One thread, no async, and nothing from a client is ever parsed here.

mod clock;
mod guard;
mod joined;
mod keeper;
mod machine;
mod message;
mod slots;
mod stand_ins;

#[cfg(test)]
mod model;

pub use guard::{Guarded, guard};
pub use joined::{Health, Joined};
pub use keeper::{Keeper, Notice, Setup};
pub use machine::{End, VERSION};
pub use message::Death;

/// The variable by which a worker knows that it is one.
pub const VARIABLE: &str = "LASTBYTE_WORKER";
