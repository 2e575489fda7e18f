//! The native door: REST and server-sent events under `/v1`.

mod answer;
mod events;
mod input;
mod output;
mod routes;

pub use routes::router;
