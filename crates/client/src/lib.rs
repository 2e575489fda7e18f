//! A Rust client of the API.
