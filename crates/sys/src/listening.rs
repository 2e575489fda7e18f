//! Which sockets listen on a TCP port, according to `/proc`.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::PathBuf;

/// The state of a listening socket in `/proc/net/tcp`.
const LISTEN: &str = "0A";

/// The flags of one in `/proc/net/unix`.
const UNIX_LISTEN: &str = "00010000";

/// The network namespace of a process. Processes in the same one see the same ports.
pub fn network_of(pid: i32) -> io::Result<PathBuf> {
    fs::read_link(format!("/proc/{pid}/ns/net"))
}

/// The sockets that listen on this port in the process's network namespace, named as in
/// `/proc/PID/fd`.
pub fn on_port(pid: i32, port: u16) -> io::Result<Vec<PathBuf>> {
    let mut sockets = Vec::new();
    for table in ["tcp", "tcp6"] {
        match fs::read_to_string(format!("/proc/{pid}/net/{table}")) {
            Ok(text) => sockets.extend(listening(&text, port)),
            // The kernel may lack IPv4 or IPv6.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(sockets)
}

/// The inodes of all sockets that listen in the process's network namespace, TCP and unix. What
/// cannot be read is left out.
pub fn everywhere(pid: i32) -> HashSet<u64> {
    let read = |table| fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default();
    let field = |line: &str, number| line.split_ascii_whitespace().nth(number).map(str::to_owned);
    let mut sockets = HashSet::new();
    for (table, state, listens, inode) in
        [("tcp", 3, LISTEN, 9), ("tcp6", 3, LISTEN, 9), ("unix", 3, UNIX_LISTEN, 6)]
    {
        let text = read(table);
        let listening = text.lines().filter(|line| field(line, state).as_deref() == Some(listens));
        sockets.extend(listening.filter_map(|line| field(line, inode)?.parse::<u64>().ok()));
    }
    sockets
}

/// The columns of a line: number, local address and port, remote address and port, state, …, with
/// the inode as the tenth.
fn listening(table: &str, port: u16) -> impl Iterator<Item = PathBuf> {
    table.lines().skip(1).filter_map(move |line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let (_, local_port) = fields.get(1)?.rsplit_once(':')?;
        let listens = *fields.get(3)? == LISTEN && u16::from_str_radix(local_port, 16) == Ok(port);
        listens.then(|| format!("socket:[{}]", fields.get(9).unwrap_or(&"")).into())
    })
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::{AsFd, BorrowedFd};
    use std::os::unix::net::UnixListener;

    use super::*;
    use crate::procfs::holds_any;

    #[test]
    fn every_listening_socket_is_found_by_its_inode() {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let folder = tempfile::tempdir().expect("a folder");
        let tcp = TcpListener::bind("127.0.0.1:0").expect("a port");
        let unix = UnixListener::bind(folder.path().join("s")).expect("a socket");
        let connected = TcpStream::connect(tcp.local_addr().expect("bound")).expect("accepted");
        let inode = |socket: BorrowedFd<'_>| rustix::fs::fstat(socket).expect("facts").st_ino;
        let all = everywhere(own);
        assert!(all.contains(&inode(tcp.as_fd())) && all.contains(&inode(unix.as_fd())));
        assert!(!all.contains(&inode(connected.as_fd())));
    }

    const TABLE: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 77 1 0
   1: 0100007F:1F90 0100007F:9C40 01 00000000:00000000 00:00000000 00000000  1000        0 78 1 0
   2: 0100007F:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 79 1 0
";

    #[test]
    fn only_a_socket_that_listens_on_the_very_port_counts() {
        let found = |port| listening(TABLE, port).collect::<Vec<_>>();
        assert_eq!(found(8080), [PathBuf::from("socket:[77]")]);
        assert_eq!(found(0x9C40), Vec::<PathBuf>::new());
    }

    #[test]
    fn our_own_listener_is_found_and_is_ours_until_it_is_closed() {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        for address in ["127.0.0.1:0", "[::1]:0"] {
            // The machine may lack IPv4 or IPv6.
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let port = listener.local_addr().unwrap().port();
            let sockets = on_port(own, port).unwrap();
            assert!(holds_any(own, &sockets), "{address}: {sockets:?}");
            drop(listener);
            assert!(!holds_any(own, &sockets));
        }
    }
}
