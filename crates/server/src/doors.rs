//! The protocols that offer the verbs, one folder each.

pub mod coder;
pub mod codex;
pub mod http;
mod router;

pub use router::router;
