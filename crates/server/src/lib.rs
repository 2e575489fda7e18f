//! The verbs, and the doors to them.

pub mod doors;
