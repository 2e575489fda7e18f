//! The native door: REST, server-sent events and a WebSocket under `/v1`.

mod answer;
mod attach;
mod events;
mod follow;
mod input;
mod metrics;
mod output;
mod partial;
mod route;
mod routes;
mod sse;

pub use routes::{offered, router};
