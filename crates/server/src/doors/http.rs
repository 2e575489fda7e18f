//! The native door: REST and server-sent events under `/v1`.

mod answer;
mod events;
mod follow;
mod input;
mod output;
mod routes;
mod sse;

pub use routes::router;
