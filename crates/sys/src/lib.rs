//! System calls behind safe functions; the one crate that may say `unsafe`.
