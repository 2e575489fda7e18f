//! The protocols that offer the verbs, one folder each.

pub mod codex;
pub mod http;
