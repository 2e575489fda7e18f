//! A terminal, or a pipe, attached to a process that a server keeps.
//!
//! What comes in: `input.rs` with `detach_key.rs` → `outgoing.rs` → the server. What goes out: the
//! server → `terminal_guard.rs`; `sequences.rs` and `modes.rs` track what the program
//! changed on the terminal. `session.rs` has both; `replay.rs` is what is shown first; `reconnect.rs` makes another connection when one breaks.

pub(crate) mod detach_key;
pub(crate) mod input;
mod modes;
mod outgoing;
mod reconnect;
pub(crate) mod replay;
mod sequences;
pub(crate) mod session;
mod terminal_guard;
mod window;
