//! The methods, one file each: what a request says, parsed and judged.

mod call;
mod exec;
mod initialize;
mod kill;
mod resize;
mod resize_pty;
mod size;
mod spawn;
mod terminate;
mod write;
mod write_stdin;

pub(super) use call::{Call, Control, Target};
pub(super) use initialize::Handshake;
