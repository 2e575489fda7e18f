//! Numbers for a monitoring system, in the text format of Prometheus.
//!
//! Nothing is counted here: the engine counts what happens to processes, [`Traffic`] what happens to
//! connections, [`Answers`] how fast routes answer. This is where they are read and written out.
//!
//! [`Traffic`]: crate::listen::Traffic

mod answers;
mod page;
mod text;

pub use answers::Answers;
pub(crate) use answers::{Answered, waited};
pub(crate) use page::page;
