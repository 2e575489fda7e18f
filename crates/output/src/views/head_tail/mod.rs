//! The beginning and the end, when the whole is too much.

mod coder;

pub use coder::{CoderOutput, Truncated, coder};
