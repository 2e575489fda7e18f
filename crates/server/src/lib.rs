//! The verbs, and the doors to them.
//!
//! A verb takes the engine and the words of a request and gives the words of an answer; a door
//! parses, calls a verb and renders, and holds no state but its connection.

mod app;
pub mod doors;
mod from_wire;
mod limits;
pub mod listen;
pub mod to_wire;
pub mod verbs;

pub use app::App;
pub use doors::http::router;
pub use limits::Limits;
