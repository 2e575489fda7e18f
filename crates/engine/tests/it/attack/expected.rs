//! Which attempts must fail and which must work.

use lastbyte_engine::{Enforcement, Network};

use super::Outcome;
use super::ground::Case;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    Refused,
    Allowed,
}

/// For a confined command. Attempts that are not listed here must be refused.
pub fn expected(case: Case, enforcement: Enforcement, outcome: &Outcome) -> Expected {
    let mounts = enforcement != Enforcement::Landlock;
    let allowed = match (outcome.group.as_str(), outcome.name.as_str()) {
        ("ordinary", _) => true,
        ("workspace", "chmod in the workspace" | "semaphores between processes") => {
            case.writes() && mounts
        }
        ("workspace", _) => case.writes(),
        // These need a capability.
        ("network", "raw socket" | "packet socket") => false,
        ("network", "unix socket by abstract name") => false,
        ("network", _) => case.network() == Network::On,
        // Without mounts nothing can be hidden; without the network a token opens nothing.
        ("the server's own", "its token" | "its token by proc self root" | "logs of others") => {
            !mounts
        }
        _ => false,
    };
    if allowed { Expected::Allowed } else { Expected::Refused }
}
