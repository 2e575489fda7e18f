//! The exec-server of Codex, one file for each promise.

mod burst;
mod events;
mod files;
mod fixture;
mod hostile;
mod sessions;
mod slow_client;
mod terminate;
mod transport;
