//! The log of a process and the views of it: no async, no serde.

pub mod decode;
pub mod log;
pub mod views;
