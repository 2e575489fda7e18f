//! The supervisor of the daemon, such as systemd: sockets from it (`sd_listen_fds(3)`), word to it
//! (`sd_notify(3)`), and whether the log is its own.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};

use anyhow::{Context, bail};
use lastbyte_engine::Environment;
use rustix::fs::fstat;
use rustix::net::sockopt::{socket_domain, socket_type};
use rustix::net::{AddressFamily, SocketType};
use rustix::stdio::stderr;

/// What is said to us alone, and would be misunderstood by commands.
const OURS: [&str; 6] = [
    lastbyte_keeper::VARIABLE,
    "LISTEN_FDNAMES",
    "LISTEN_FDS",
    "LISTEN_PID",
    "LISTEN_PIDFDID",
    "NOTIFY_SOCKET",
];

/// Sockets that listen already. Their files are not ours to remove.
#[derive(Debug, Default)]
pub(crate) struct HandedOver {
    pub(crate) unix: Vec<UnixListener>,
    pub(crate) tcp: Vec<TcpListener>,
}

/// The states that a supervisor is told.
pub(crate) const READY: &str = "READY=1\n";
pub(crate) const STOPPING: &str = "STOPPING=1\n";

impl HandedOver {
    /// Must be called before anything is opened.
    pub(crate) fn take() -> anyhow::Result<Self> {
        let mut taken = Self::default();
        // What was meant for another process is inherited by many.
        if number("LISTEN_PID") != Some(std::process::id()) {
            return Ok(taken);
        }
        let count = number("LISTEN_FDS").and_then(|count| count.try_into().ok());
        let count = count.context("invalid LISTEN_FDS: not a number of sockets")?;
        let sockets = lastbyte_sys::listen_fds::take(count);
        for socket in sockets.context("invalid LISTEN_FDS: not a listening socket")? {
            match (socket_domain(&socket)?, socket_type(&socket)?) {
                (AddressFamily::UNIX, SocketType::STREAM) => taken.unix.push(socket.into()),
                (AddressFamily::INET | AddressFamily::INET6, SocketType::STREAM) => {
                    taken.tcp.push(socket.into());
                }
                (family, kind) => bail!(
                    "cannot use inherited socket ({family:?}, {kind:?}): only unix and TCP stream \
                     sockets work (ListenStream= in a socket unit)"
                ),
            }
        }
        Ok(taken)
    }
}

/// Our environment without what the supervisor says to us alone.
pub(crate) fn environment_of_commands() -> Environment {
    env::vars_os().filter(|(name, _)| !OURS.iter().any(|ours| name == ours)).collect()
}

/// Tells the supervisor, if it wants to know.
pub(crate) fn notify(state: &str) {
    let Some(path) = env::var_os("NOTIFY_SOCKET").filter(|path| !path.is_empty()) else { return };
    if let Err(error) = send(&path, state) {
        tracing::warn!(?path, "cannot notify the supervisor: {error:#}");
    }
}

/// Whether standard error goes to systemd's journal (`systemd.exec(5)`). That the variable is set does not
/// say so: it is inherited by programs whose standard error leads elsewhere.
pub(crate) fn stderr_is_journal() -> bool {
    let Ok(found) = fstat(stderr()) else { return false };
    let own = format!("{}:{}", found.st_dev, found.st_ino);
    env::var("JOURNAL_STREAM").is_ok_and(|stream| stream == own)
}

fn send(path: &OsStr, text: &str) -> io::Result<()> {
    let address = match path.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(path)?,
    };
    let socket = UnixDatagram::unbound()?;
    // One that does not read must not hold the daemon up.
    socket.set_nonblocking(true)?;
    socket.send_to_addr(text.as_bytes(), &address).map(drop)
}

fn number(variable: &str) -> Option<u32> {
    env::var(variable).ok()?.parse().ok()
}
