//! The views of a log: each takes a range and a budget and returns ranges and text.
//!
//! A view is a function over a [`Source`]. It reads in chunks of 64 KiB, holds no more than its
//! budget, writes nothing, and knows neither the log nor the clock. Every offset and range in an
//! answer refers to the log. What a view leaves out for its budget is named by its range; what was
//! dropped, [`Source::dropped`] names.
//!
//! An offset of the log has bytes, lies in a dropped range or, if the source shows only one stream,
//! has bytes of the other stream. A dropped range ends the line before it. Bytes of the
//! other stream are skipped and end nothing; a range may span them.
//!
//! - `source.rs`: what a view reads
//! - `walk.rs`, `mapped_bytes.rs`: reading forward and backward
//! - `line_index.rs`: where lines begin
//! - `raw.rs`, `lines.rs`, `head_tail/`, `text.rs`, `search.rs`, `screen.rs`: the views

pub mod head_tail;
pub mod line_index;
pub mod lines;
mod mapped_bytes;
pub mod raw;
pub mod screen;
pub mod search;
#[cfg(test)]
mod slice;
mod source;
pub mod text;
mod walk;

pub use source::{Read, Source};
pub use walk::Chunk;

#[cfg(test)]
use slice::Slice;
