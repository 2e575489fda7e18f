//! The views of a log: bytes and a budget in, ranges and text out.
//!
//! A view is a function over a [`Source`]. It reads in chunks of 64 KiB, keeps no more than its
//! budget, writes nothing, and knows neither the log nor the clock. Every offset and every range,
//! in every answer, is a place in the log; what a view leaves out it names by its range.
//!
//! Three things can be at a place in the log: bytes, a dropped range, and, where the source shows
//! only one stream ([`Only`]), bytes of the other. A dropped range ends the line before it. Bytes
//! of the other stream end nothing: they are not there, and a range that reaches over them covers
//! them.

mod back;
pub mod head_tail;
pub mod lines;
mod only;
mod piece;
pub mod raw;
pub mod search;
mod source;
pub mod text;
mod walk;

pub use only::{Only, Run};
pub use source::{Read, Slice, Source};
pub use walk::Chunk;
