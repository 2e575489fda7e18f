//! The protocols that offer the verbs, one folder each.

pub mod coder;
pub mod http;
mod router;

pub use router::router;
