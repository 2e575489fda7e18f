//! Socket queries: unsent bytes, hangup, and the process at the other end.

use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::ptr;
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::sockopt;

use crate::pipe::poll_now;
use crate::raw::{check, number, syscall};

/// How many written bytes the other end has not taken yet: for TCP the unacknowledged ones, for a
/// unix socket the memory of the unread ones.
pub fn unsent(socket: impl AsFd) -> Result<u64, Errno> {
    let mut bytes: libc::c_int = 0;
    let place = ptr::from_mut(&mut bytes) as usize;
    let args = [number(socket.as_fd()), libc::TIOCOUTQ as usize, place];
    // SAFETY: SIOCOUTQ, which equals TIOCOUTQ, writes one int to a live, writable place.
    check(unsafe { syscall(libc::SYS_ioctl, args) })?;
    Ok(u64::try_from(bytes).unwrap_or(0))
}

/// Whether the socket is closed in both directions. A peer that has only shut down its own side
/// still reads.
pub fn is_hung_up(socket: impl AsFd) -> bool {
    // Hangups and errors are always reported.
    poll_now(socket, PollFlags::empty()).is_ok_and(|events| !events.is_empty())
}

/// Enables TCP keepalive probes after this much silence. The connection fails if the peer refuses a
/// probe, or does not answer four.
pub fn set_keepalive(socket: impl AsFd, after: Duration) -> Result<(), Errno> {
    sockopt::set_tcp_keepidle(&socket, after)?;
    sockopt::set_tcp_keepintvl(&socket, after)?;
    sockopt::set_tcp_keepcnt(&socket, 4)?;
    sockopt::set_socket_keepalive(&socket, true)
}

/// The process at the other end of a unix socket, by pidfd: unlike a pid, it cannot come to mean
/// another process.
#[derive(Debug)]
pub struct PeerProcess(OwnedFd);

impl PeerProcess {
    /// Fails with `NOPROTOOPT` before Linux 6.5, and with another error if the peer is gone.
    pub fn from_socket(socket: impl AsFd) -> Result<Self, Errno> {
        let mut pidfd: libc::c_int = -1;
        let mut size = size_of::<libc::c_int>() as libc::socklen_t;
        let (pidfd_at, size_at) =
            (ptr::from_mut(&mut pidfd) as usize, ptr::from_mut(&mut size) as usize);
        let level = libc::SOL_SOCKET as usize;
        let args = [number(socket.as_fd()), level, SO_PEERPIDFD, pidfd_at, size_at];
        // SAFETY: the kernel writes at most `size` bytes to a live int, and the size to another.
        check(unsafe { syscall(libc::SYS_getsockopt, args) })?;
        // SAFETY: the kernel created this descriptor for us in the call above.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(pidfd) }))
    }

    /// Whether it has exited, so its pid may be reused.
    pub fn is_gone(&self) -> bool {
        // If poll fails, the process counts as gone.
        !poll_now(&self.0, PollFlags::IN).is_ok_and(|events| events.is_empty())
    }
}

/// Not in libc yet.
const SO_PEERPIDFD: usize = 77;

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn what_nobody_read_is_on_its_way_on_a_unix_socket() {
        let (mut here, mut there) = UnixStream::pair().unwrap();
        assert_eq!(unsent(&here), Ok(0));
        here.write_all(b"hello").unwrap();
        assert!(unsent(&here).unwrap() >= 5);
        there.read_exact(&mut [0; 5]).unwrap();
        assert_eq!(unsent(&here), Ok(0));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a peer of somebody else's making")]
    fn a_peer_is_there_until_it_exits() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let _here = UnixStream::connect(&path).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        assert!(!PeerProcess::from_socket(&accepted).unwrap().is_gone());

        let connect = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); \
                       sys.stdin.read()";
        let mut child = std::process::Command::new("python3")
            .args(["-c", connect])
            .arg(&path)
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let (accepted, _) = listener.accept().unwrap();
        let peer = PeerProcess::from_socket(&accepted).unwrap();
        assert!(!peer.is_gone());
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(peer.is_gone());
    }

    #[test]
    fn what_nobody_has_room_for_is_on_its_way_on_a_tcp_socket() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut here = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (_there, _) = listener.accept().unwrap();
        assert_eq!(unsent(&here), Ok(0));
        here.set_nonblocking(true).unwrap();
        while here.write(&[0; 1 << 16]).is_ok() {}
        assert!(unsent(&here).unwrap() > 0);
    }
}
