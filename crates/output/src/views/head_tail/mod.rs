//! The beginning and the end of a log that is too long to show whole.

mod coder;
mod native;

pub use coder::{CoderOutput, Truncated, coder};
pub use native::{HeadTail, native};
