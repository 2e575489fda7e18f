//! The guarantees of the views as property tests.
#![allow(clippy::unwrap_used, reason = "a test may")]

mod chopped;
mod coder;
mod fuzz;
mod head_tail;
mod huge;
mod lines;
mod only;
mod plain;
mod raw;
mod search;
mod stale;
mod text;
