//! A terminal, or a pipe, attached to a process that a server keeps.
//!
//! What comes in: `input.rs` with `detach_key.rs` → `outgoing.rs` → the server. What goes out: the
//! server → `lent.rs` → `display.rs`; `sequences.rs` and `modes.rs` with `colours.rs` are how a
//! terminal is known that was left in the middle of something. `conversation.rs` has both, from its
//! `opening.rs` on; `begin.rs` is where the output begins, with `replay.rs` for what was before;
//! `again.rs` makes another connection when one breaks.

mod again;
pub(crate) mod begin;
mod colours;
pub(crate) mod conversation;
pub(crate) mod detach_key;
mod display;
pub(crate) mod input;
mod lent;
mod modes;
pub(crate) mod opening;
mod outgoing;
mod replay;
mod sequences;
mod window;
