//! The verbs, and the doors to them.

mod app;
pub mod listen;

pub use app::{App, Limits, router};
