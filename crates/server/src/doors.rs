//! The doors: each speaks one protocol, and parses, calls and renders.

pub mod codex;
