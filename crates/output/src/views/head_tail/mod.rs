//! The beginning and the end, when the whole is too much.

mod coder;
mod native;

pub use coder::{CoderOutput, Truncated, coder};
pub use native::{HeadTail, native};
