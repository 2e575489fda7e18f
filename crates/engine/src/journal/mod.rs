//! The journal: what was launched, what it said as long as that was little, how it ended and what
//! was forgotten, for the next engine on the same state folder.
//!
//! ```text
//!  header: "lastbyte" | version u32 | key 16 bytes | checksum u64
//!  frame:  length u32 | checksum u64 | payload: version u8 | kind u8 | fields…
//! ```
//!
//! A frame is appended by one write, without a sync: it outlives this program, not the machine.
//! What is said of a launch never has the value of an environment variable. What a command itself has
//! said is in it while that is little, and goes with the process.

mod codec;
mod compaction;
mod ending;
mod entry;
mod file;
mod fingerprint;
mod frames;
mod live;
mod record;
mod replay;
mod room;
#[cfg(test)]
mod round_trip;
#[cfg(test)]
mod sample;
mod sandbox;
mod short;
mod store;
mod tending;
mod thinning;

pub(crate) use entry::Entry;
pub(crate) use file::{Journal, damaged_path};
pub(crate) use fingerprint::{Fingerprint, HashKey};
pub(crate) use record::Launched;
pub(crate) use replay::{Past, Replayed};
pub(crate) use short::Keeper;
