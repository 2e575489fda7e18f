//! What a socket has on its way.

use std::os::fd::{AsFd, AsRawFd};

use rustix::io::Errno;

/// How many bytes were written that the other end has not taken yet: for TCP those that were not
/// acknowledged, for a unix socket the memory of those that were not read.
pub fn unsent(socket: impl AsFd) -> Result<u64, Errno> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: SIOCOUTQ, which is TIOCOUTQ, writes one int to a live, writable place.
    let answer = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    match answer {
        0 => Ok(u64::try_from(bytes).unwrap_or(0)),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)),
    }
}

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
