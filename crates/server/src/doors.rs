//! The protocols that offer the verbs, one folder each.

pub mod coder;
pub mod codex;
pub mod http;
mod router;
mod websocket;

pub use router::router;
