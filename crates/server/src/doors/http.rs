//! The native door: REST, server-sent events and a WebSocket under `/v1`.

mod answer;
mod attach;
mod events;
mod follow;
mod input;
mod keyboard_notices;
mod output;
mod partial;
mod routes;
mod sse;

pub use routes::{offered, router};
pub use sse::{answer as event_stream, last_event_id};
