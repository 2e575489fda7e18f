//! What the daemon needs besides a server: `instance.rs` (one for a state directory, and how others
//! find it), `log.rs` and `journal_watch.rs` (what it logs), `closing.rs` (its end), `supervisor.rs`
//! (systemd), `listen.rs` (addresses of `--listen`).

pub(crate) mod closing;
pub(crate) mod instance;
pub(crate) mod journal_watch;
pub(crate) mod listen;
pub(crate) mod log;
pub(crate) mod supervisor;
