//! The journal: which processes were launched, with which log files, how they ended, their output if it
//! is short, and which were forgotten, for the next engine on the same state folder.
//!
//! ```text
//!  header: "lastbyte" | version u32 | key 16 bytes | checksum u64
//!  frame:  length u32 | checksum u64 | payload: version u8 | kind u8 | fields…
//! ```
//!
//! A frame is appended by one write, without a sync: it survives a crash of this program, not of the
//! machine. The record of a launch never has the value of an environment variable. Short output is part
//! of the record of an ending, and is removed with the process.
//!
//! `record` is one fact, `codec`, `ending`, `limits` and `sandbox` turn it into bytes, `frames` add
//! length and checksum, `store` writes them or keeps them until there is disk space, `file` opens and
//! appends, `replay` reads. `maintenance` and `compaction` write a smaller file while the journal is in
//! use, with `live` and `reserve`. `entry` is what one process writes, `fingerprint` compares launches
//! without keeping them, `state` says what is on disk, `lock` keeps other servers out, `set_aside` moves
//! files away that no record names.

mod codec;
mod compaction;
mod ending;
mod entry;
mod file;
mod fingerprint;
mod frames;
#[cfg(test)]
mod fuzz;
mod limits;
mod live;
mod lock;
mod maintenance;
mod record;
mod replay;
mod reserve;
mod resources;
#[cfg(test)]
mod round_trip;
#[cfg(test)]
mod sample;
mod sandbox;
mod set_aside;
mod state;
mod store;

pub(crate) use entry::Entry;
pub(crate) use file::{Journal, Opening};
pub use file::{journal_file, recorded_processes};
pub use fingerprint::Field;
pub(crate) use fingerprint::{FieldHashes, Fingerprint, HashKey};
pub(crate) use record::Launched;
pub(crate) use replay::{Past, Replayed};
pub(crate) use set_aside::SetAside;
pub use set_aside::set_aside_folders;
pub use state::JournalState;
pub(crate) use state::Recorded;
