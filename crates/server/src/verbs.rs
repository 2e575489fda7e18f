//! The operations: each takes a request of the API and gives its answer. `refusal` maps every error
//! of the engine to one of the API.

pub mod control;
pub mod events;
pub mod follow;
pub mod lines;
pub mod links;
pub mod list;
pub(crate) mod long_read;
pub mod read;
pub mod receipt;
pub(crate) mod refusal;
pub mod search;
pub(crate) mod select;
pub mod start;
pub mod times;
pub mod tokens;
pub mod upgrade;
pub mod wait;
pub mod write;
