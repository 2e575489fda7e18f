//! Who is at the other end of a connection.

use std::fmt;
use std::net::SocketAddr;

use rustix::process::geteuid;
use tokio::net::unix::UCred;

use super::confinement::{Confinement, Filters};

/// As the kernel knows it, not as the peer says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    Unix {
        /// Who connected; not known of one in a pid namespace that we cannot see into.
        pid: Option<i32>,
        uid: u32,
        /// When it connected.
        confinement: Confinement,
    },
    Tcp(SocketAddr),
}

impl Peer {
    /// The other end of a unix socket, seen from a server that has these itself.
    pub(super) fn of_unix(peer: UCred, own: Filters) -> Self {
        let (pid, uid) = (peer.pid().filter(|pid| *pid > 0), peer.uid());
        let confinement = match pid {
            // A sandbox changes nobody's user, and lies in no namespace of pids but ours.
            Some(pid) if uid == geteuid().as_raw() => own.confinement_of(pid),
            Some(_) | None => Confinement::None,
        };
        Self::Unix { pid, uid, confinement }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix { pid: Some(pid), uid, .. } => write!(out, "pid {pid} of uid {uid}"),
            Self::Unix { pid: None, uid, .. } => write!(out, "uid {uid}"),
            Self::Tcp(address) => write!(out, "{address}"),
        }
    }
}
