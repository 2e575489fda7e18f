//! What the daemon needs besides listening: a state folder of its own, a log, and an end.

pub(crate) mod address;
pub(crate) mod closing;
pub(crate) mod departing;
pub(crate) mod listen;
pub(crate) mod lock;
pub(crate) mod log;
pub(crate) mod supervisor;
