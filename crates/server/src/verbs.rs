//! The operations, one file each: words of a request in, words of an answer out.

pub mod events;
pub mod follow;
pub mod forget;
pub mod list;
pub mod read;
pub(crate) mod refusal;
pub mod resize;
pub mod search;
pub mod show;
pub mod signal;
pub mod start;
pub mod stop;
pub mod times;
pub mod wait;
pub mod write;
