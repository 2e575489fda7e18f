//! Who is at the other end of a connection.

use std::fmt;
use std::net::SocketAddr;

/// As the kernel knows it, not as the peer says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    Unix {
        /// Who connected; not known of one in a pid namespace that we cannot see into.
        pid: Option<i32>,
        uid: u32,
    },
    Tcp(SocketAddr),
}

impl fmt::Display for Peer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix { pid: Some(pid), uid } => write!(out, "pid {pid} of uid {uid}"),
            Self::Unix { pid: None, uid } => write!(out, "uid {uid}"),
            Self::Tcp(address) => write!(out, "{address}"),
        }
    }
}
