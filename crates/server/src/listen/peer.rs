//! The client at the other end of a connection.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use lastbyte_sys::socket::PeerProcess;
use rustix::io::Errno;
use rustix::process::geteuid;
use tokio::net::UnixStream;

use super::confinement::{OwnConfinement, PeerConfinement};

/// As the kernel knows it, not as the peer says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    Unix {
        /// Who connected; not known of one in a pid namespace that we cannot see into.
        pid: Option<i32>,
        uid: u32,
        /// When it connected.
        confinement: PeerConfinement,
    },
    Tcp(SocketAddr),
    /// A client elsewhere, whose connection is carried to us by our own process.
    Carried,
}

impl Peer {
    /// The other end of a unix socket, seen from a server that is in this itself.
    pub(super) fn from_unix(stream: &UnixStream, own: OwnConfinement) -> io::Result<Self> {
        let peer = stream.peer_cred()?;
        let (pid, uid) = (peer.pid().filter(|pid| *pid > 0), peer.uid());
        let confinement = match pid {
            // A sandbox does not change the user, and has no pid namespace of its own.
            Some(pid) if uid == geteuid().as_raw() => confinement(stream, pid, own),
            Some(_) | None => PeerConfinement::None,
        };
        Ok(Self::Unix { pid, uid, confinement })
    }
}

/// What was seen by the number is of the peer only if that is still there afterwards: a number can
/// be another's by the time a connection is accepted.
fn confinement(stream: &UnixStream, pid: i32, own: OwnConfinement) -> PeerConfinement {
    let process = PeerProcess::from_socket(stream);
    let seen = own.confinement_of(pid);
    match process {
        Ok(process) if process.is_gone() => PeerConfinement::Unknown,
        // An old kernel has only the number.
        Ok(_) | Err(Errno::NOPROTOOPT) => seen,
        Err(errno) => PeerConfinement::unseen(errno),
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix { pid: Some(pid), uid, .. } => write!(out, "pid {pid} of uid {uid}"),
            Self::Unix { pid: None, uid, .. } => write!(out, "uid {uid}"),
            Self::Tcp(address) => write!(out, "{address}"),
            Self::Carried => write!(out, "carried"),
        }
    }
}

#[cfg(test)]
mod tests {
    use lastbyte_testkit::{ANCHOR_VARIABLE, Reused, inside, script};
    use tokio::net::UnixListener;

    use super::*;

    /// A peer connects and goes, and its number is given to another.
    #[tokio::test]
    #[expect(clippy::disallowed_methods, reason = "a peer of somebody else's making")]
    async fn who_has_the_number_of_a_peer_that_is_gone_is_not_taken_for_it() {
        let flags = ["--pid", "--fork", "--mount-proc", "--kill-child"];
        let name =
            "listen::peer::tests::who_has_the_number_of_a_peer_that_is_gone_is_not_taken_for_it";
        if !inside(name, &flags) {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let connects = script("hold");
        let mut child = std::process::Command::new(&connects[0])
            .args(&connects[1..])
            .env(ANCHOR_VARIABLE, &path)
            .spawn()
            .unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let pid = child.id().cast_signed();
        let uid = geteuid().as_raw();
        let was = |confinement| Peer::Unix { pid: Some(pid), uid, confinement };
        let seen = || Peer::from_unix(&stream, OwnConfinement::detect()).unwrap();
        assert_eq!(seen(), was(PeerConfinement::None));
        child.kill().unwrap();
        child.wait().unwrap();
        let mut other = Reused::pid(pid);
        assert_eq!(
            OwnConfinement::detect().confinement_of(pid),
            PeerConfinement::None,
            "of the other"
        );
        assert_eq!(seen(), was(PeerConfinement::Unknown));
        assert!(other.is_alive());
    }
}
