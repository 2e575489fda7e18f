//! Who is at the other end of a connection.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use lastbyte_sys::socket::PeerProcess;
use rustix::io::Errno;
use rustix::process::geteuid;
use tokio::net::UnixStream;

use super::confinement::{Confinement, Own};

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
    /// The other end of a unix socket, seen from a server that is in this itself.
    pub(super) fn of_unix(stream: &UnixStream, own: Own) -> io::Result<Self> {
        let peer = stream.peer_cred()?;
        let (pid, uid) = (peer.pid().filter(|pid| *pid > 0), peer.uid());
        let confinement = match pid {
            // A sandbox changes nobody's user, and lies in no namespace of pids but ours.
            Some(pid) if uid == geteuid().as_raw() => confinement(stream, pid, own),
            Some(_) | None => Confinement::None,
        };
        Ok(Self::Unix { pid, uid, confinement })
    }
}

/// What was seen by the number is of the peer only if that is still there afterwards: a number can
/// be another's by the time a connection is accepted.
fn confinement(stream: &UnixStream, pid: i32, own: Own) -> Confinement {
    let process = PeerProcess::of(stream);
    let seen = own.confinement_of(pid);
    match process {
        Ok(process) if process.is_gone() => Confinement::Unknown,
        // An old kernel has only the number.
        Ok(_) | Err(Errno::NOPROTOOPT) => seen,
        Err(_) => Confinement::Unknown,
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
