//! What the daemon needs besides a server: `instance.rs` (one for a state directory, and how others
//! find it), `keep.rs` and `kept.rs` (its keeper, and the worker's side),
//! `log.rs` and `journal_watch.rs` (what it logs), `closing.rs` (its end), `oom.rs` (whom the kernel kills
//! first), `supervisor.rs`
//! (systemd), `listen.rs` (addresses of `--listen`), `upgrade.rs` (another program takes over).

pub(crate) mod closing;
pub(crate) mod instance;
pub(crate) mod journal_watch;
pub(crate) mod keep;
pub(crate) mod kept;
pub(crate) mod listen;
pub(crate) mod log;
pub(crate) mod oom;
pub(crate) mod supervisor;
pub(crate) mod untraceable;
pub(crate) mod upgrade;
