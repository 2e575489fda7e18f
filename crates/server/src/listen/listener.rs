//! Listeners on unix sockets and TCP ports.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener as StdTcpListener};
use std::os::unix::net::UnixListener as StdUnixListener;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use lastbyte_sys::socket;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use tokio::net::{TcpListener, UnixStream};
use tokio::sync::mpsc;

use super::auth::Access;
use super::confinement::OwnConfinement;
use super::created_tokens::CreatedTokens;
use super::peer::Peer;
use super::scope::Scope;
use super::socket::Stream;
use super::unix::{OwnSocket, UnixError};

/// Accepts connections from the moment it is made. Shown as `unix:PATH` or `http://IP:PORT`.
#[derive(Debug)]
pub struct Listener {
    bound: Bound,
    pub(super) access: Access,
}

#[derive(Debug)]
enum Bound {
    Unix(OwnSocket, OwnConfinement),
    Tcp(TcpListener, SocketAddr),
    Carried(mpsc::Receiver<Carried>),
}

/// A connection that our own process carries to us, and what its client may do.
#[derive(Debug)]
pub struct Carried {
    pub stream: UnixStream,
    pub scope: Scope,
}

/// Why a listener cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    #[error(transparent)]
    Unix(#[from] UnixError),
    #[error("cannot listen on {address}: {why}; choose another --listen address")]
    Tcp { address: SocketAddr, why: io::Error },
    #[error("cannot listen on an inherited socket")]
    HandedOver { source: io::Error },
}

/// Connections that wait to be accepted; the kernel may allow fewer.
const BACKLOG: i32 = 1024;
/// A peer that is silent for this long is probed (TCP keepalive).
const PROBE_AFTER: Duration = Duration::from_secs(60);

impl Listener {
    /// The created tokens that it accepts.
    pub fn created_tokens(&self) -> Option<&Arc<CreatedTokens>> {
        match &self.access {
            Access::Token(tokens) => tokens.created(),
            Access::Open | Access::Granted(_) => None,
        }
    }

    /// A socket for this user and root, whose file goes with the listener. Must be called on a
    /// runtime.
    pub fn unix(path: &Path) -> Result<Self, BindError> {
        let bound = Bound::Unix(OwnSocket::bind(path)?, OwnConfinement::detect());
        Ok(Self { bound, access: Access::Open })
    }

    /// Port 0 is one that is free. Must be called on a runtime.
    pub fn tcp(address: SocketAddr, access: Access) -> Result<Self, BindError> {
        Self::handed_over_tcp(bind_tcp(address)?, access)
    }

    /// A socket that listens already, for this user and root, whose file stays. Must be called on a
    /// runtime.
    pub fn handed_over_unix(listener: StdUnixListener) -> Result<Self, BindError> {
        let socket = OwnSocket::handed_over(listener);
        let socket = socket.map_err(|source| BindError::HandedOver { source })?;
        Ok(Self { bound: Bound::Unix(socket, OwnConfinement::detect()), access: Access::Open })
    }

    /// A socket that our keeper has, too. Must be called on a runtime.
    pub fn kept_unix(listener: StdUnixListener) -> Result<Self, BindError> {
        let bound = Bound::Unix(OwnSocket::kept(listener)?, OwnConfinement::detect());
        Ok(Self { bound, access: Access::Open })
    }

    /// A port that listens already. Must be called on a runtime.
    pub fn handed_over_tcp(listener: StdTcpListener, access: Access) -> Result<Self, BindError> {
        let ready = || {
            listener.set_nonblocking(true)?;
            let address = listener.local_addr()?;
            Ok((TcpListener::from_std(listener)?, address))
        };
        let (listener, address) = ready().map_err(|source| BindError::HandedOver { source })?;
        Ok(Self { bound: Bound::Tcp(listener, address), access })
    }

    /// Connections that are carried to us. It never ends, also if no more can come.
    pub fn carried(connections: mpsc::Receiver<Carried>) -> Self {
        Self { bound: Bound::Carried(connections), access: Access::Open }
    }

    /// The address of a port.
    pub fn address(&self) -> Option<SocketAddr> {
        match &self.bound {
            Bound::Unix(..) | Bound::Carried(_) => None,
            Bound::Tcp(_, address) => Some(*address),
        }
    }

    /// The file of a unix socket.
    pub fn socket_file(&self) -> Option<&Path> {
        match &self.bound {
            Bound::Unix(socket, _) => Some(&socket.path),
            Bound::Tcp(..) | Bound::Carried(_) => None,
        }
    }

    /// Creates the file of a unix socket again if it was removed; says whether it did.
    pub(super) fn recreate_if_removed(&mut self) -> Result<bool, UnixError> {
        match &mut self.bound {
            Bound::Unix(socket, _) if socket.is_gone() => {
                *socket = OwnSocket::bind(&socket.path)?;
                Ok(true)
            }
            Bound::Unix(..) | Bound::Tcp(..) | Bound::Carried(_) => Ok(false),
        }
    }

    /// The next connection, who made it, and what it requires. Cancel-safe.
    pub(super) async fn accept(&mut self) -> io::Result<(Stream, Peer, Access)> {
        match &mut self.bound {
            Bound::Unix(socket, own) => {
                let (stream, _) = socket.listener.accept().await?;
                let peer = Peer::from_unix(&stream, *own)?;
                Ok((Stream::Unix(stream), peer, self.access.clone()))
            }
            Bound::Tcp(listener, _) => {
                let (stream, address) = listener.accept().await?;
                // Without it answers are late, not wrong.
                _ = stream.set_nodelay(true);
                // Without it the slot of a machine that has vanished stays taken.
                _ = socket::set_keepalive(&stream, PROBE_AFTER);
                Ok((Stream::Tcp(stream), Peer::Tcp(address), self.access.clone()))
            }
            Bound::Carried(connections) => match connections.recv().await {
                Some(Carried { stream, scope }) => {
                    Ok((Stream::Unix(stream), Peer::Carried, Access::Granted(scope)))
                }
                None => std::future::pending().await,
            },
        }
    }
}

/// A port that listens. Port 0 is one that is free.
pub fn bind_tcp(address: SocketAddr) -> Result<StdTcpListener, BindError> {
    bind(address).map_err(|errno| BindError::Tcp { address, why: errno.into() })
}

fn bind(address: SocketAddr) -> Result<StdTcpListener, Errno> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    // A server that is started again need not wait for old connections to be forgotten.
    rustix::net::sockopt::set_socket_reuseaddr(&socket, true)?;
    rustix::net::bind(&socket, &address)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

impl fmt::Display for Listener {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.bound {
            Bound::Unix(socket, _) => write!(out, "unix:{}", socket.path.display()),
            Bound::Tcp(_, address) => write!(out, "http://{address}"),
            Bound::Carried(_) => write!(out, "carried connections"),
        }
    }
}
