//! The log of a process and the views of it, without async and serde.

pub mod decode;
pub mod log;
pub mod mask;
pub mod views;
