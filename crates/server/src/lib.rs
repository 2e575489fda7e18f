//! The verbs, and the doors to them.
//!
//! A verb takes a request of the API and gives its answer; a door parses, calls a verb and renders,
//! and holds no state but its connection. `listen` is what comes before a door: sockets, limits and
//! access; `from_wire` and `to_wire` convert between the API and the engine.

mod app;
pub mod doors;
mod env_hook;
mod from_wire;
#[cfg(test)]
mod fuzz;
mod limits;
pub mod listen;
mod metrics;
mod sandboxing;
mod scoped_key;
pub mod to_wire;
pub mod verbs;

pub use app::{App, KeptBy, UpgradeAsked};
pub use doors::router;
pub use env_hook::{BadEnvironment, EnvHook, HookError, PATIENCE as ENV_HOOK_PATIENCE};
pub use from_wire::resources;
pub use limits::Limits;
pub use metrics::Answers;
pub use sandboxing::{Ports, SandboxBypass, Sandboxing};
