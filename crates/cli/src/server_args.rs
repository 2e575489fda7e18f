//! Which server a command talks to.

use std::fs::File;
use std::io::{self, Read};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use anyhow::{Context, bail};
use lastbyte_client::{Client, ClientError};

use crate::daemon::instance::{self, ShuttingDown};
use crate::{config, paths, print, usage};

/// Set on each option, so that it does not apply to the options after them.
const HEADING: &str = "Server options";

/// What is said once for each connection that was lost and made again.
pub(crate) const RECONNECTED: &str = "the connection to the server was lost; reconnected";

/// A token is much shorter.
const MAX_TOKEN: u64 = 4 << 10;

/// Where the server is.
#[derive(Debug, clap::Args)]
pub(crate) struct ServerArgs {
    /// Use the server that listens on this socket file
    #[arg(long, help_heading = HEADING, value_name = "PATH", conflicts_with = "server")]
    socket: Option<PathBuf>,

    /// Use the server that keeps its state in this directory
    #[arg(long, help_heading = HEADING, value_name = "DIR", conflicts_with = "server")]
    state: Option<PathBuf>,

    /// Use the server at this URL, like http://127.0.0.1:8722
    #[arg(long, help_heading = HEADING, value_name = "URL", value_parser = parse_url)]
    server: Option<ServerPort>,

    /// Read the server's token from this file
    #[arg(long, help_heading = HEADING, value_name = "PATH", conflicts_with_all = ["socket", "state"])]
    token_file: Option<PathBuf>,

    #[arg(long, help_heading = HEADING, value_name = "PATH", help = config::HELP)]
    pub(crate) config: Option<PathBuf>,

    #[cfg(feature = "fleet")]
    #[command(flatten)]
    fleet: crate::fleet::FleetArgs,
}

/// A port, and where it is if nothing listens there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ServerPort {
    address: SocketAddr,
    otherwise: Option<SocketAddr>,
}

/// Where a server of this user would be.
#[derive(Debug)]
pub(crate) struct ServerPlace {
    pub(crate) state: PathBuf,
    pub(crate) socket: PathBuf,
}

impl ServerArgs {
    pub(crate) async fn client(&self) -> anyhow::Result<Client> {
        #[cfg(feature = "fleet")]
        if let Some(client) = self.fleet.client().await? {
            return Ok(telling(client));
        }
        if self.server.is_none() && self.token_file.is_some() {
            return Err(usage::Error::TokenForNobody.into());
        }
        match &self.server {
            Some(port) => Ok(telling(Client::tcp(port.address(), self.token()?))),
            None => self.client_at(self.own_place()?).await,
        }
    }

    /// `None` for a server on a port or a fleet, which is not ours to start.
    pub(crate) fn place(&self) -> anyhow::Result<Option<ServerPlace>> {
        if self.server.is_some() || self.names_fleet() {
            Ok(None)
        } else {
            self.own_place().map(Some)
        }
    }

    /// Whether commands run on whichever machines a fleet has.
    pub(crate) fn names_fleet(&self) -> bool {
        #[cfg(feature = "fleet")]
        return self.fleet.is_given();
        #[cfg(not(feature = "fleet"))]
        false
    }

    /// Whether an option or setting names the socket.
    pub(crate) fn names_socket(&self) -> bool {
        self.socket.is_some()
    }

    /// Whether an option or setting names the state directory.
    pub(crate) fn names_state(&self) -> bool {
        self.state.is_some()
    }

    fn own_place(&self) -> anyhow::Result<ServerPlace> {
        let state = paths::state_dir(self.state.as_deref())?;
        let socket = paths::socket_path(self.state.as_deref(), self.socket.as_deref())?;
        Ok(ServerPlace { state, socket })
    }

    /// Where a server of this state directory answers; where one would be, if none does and none is
    /// about to go.
    async fn client_at(&self, place: ServerPlace) -> anyhow::Result<Client> {
        let is_meant = |address: &PathBuf| {
            let unnamed = self.socket.is_none();
            *address == place.socket || unnamed && UnixStream::connect(&place.socket).is_err()
        };
        // One that has no address does not listen yet.
        if let Some(address) = instance::read_address(&place.state).filter(is_meant) {
            if let Some(server) = ShuttingDown::look(&place.state, &address) {
                return Err(server.into());
            }
            let client = telling(Client::unix(&address));
            if address == place.socket || client.health().await.is_ok() {
                return Ok(client);
            }
        }
        Ok(telling(Client::unix(place.socket)))
    }

    fn token(&self) -> anyhow::Result<Option<String>> {
        let Some(path) = &self.token_file else { return Ok(None) };
        let mut token = Vec::new();
        // A device has no end.
        let read =
            File::open(path).and_then(|file| file.take(MAX_TOKEN + 1).read_to_end(&mut token));
        let length = read.with_context(|| format!("cannot read token file {}", path.display()))?;
        let path = path.display();
        match str::from_utf8(&token).map(str::trim) {
            _ if length as u64 > MAX_TOKEN => bail!("token file {path} is larger than 4 KiB"),
            Err(_) => bail!("token file {path} is not UTF-8"),
            Ok("") => bail!("token file {path} is empty"),
            Ok(token) => Ok(Some(token.to_owned())),
        }
    }
}

/// Says so when the connection was lost and made again.
pub(crate) fn telling(client: Client) -> Client {
    client.on_reconnect(|| print::message(RECONNECTED))
}

/// Whether the error means that no server listens there.
pub(crate) fn is_not_running(error: &ClientError) -> bool {
    match error {
        ClientError::Connect { source, .. } => is_nobody_there(source),
        ClientError::Protocol { .. }
        | ClientError::StartUnknown { .. }
        | ClientError::Foreign { .. }
        | ClientError::Refused(_) => false,
    }
}

/// Whether a connection failed because nothing listens.
pub(crate) fn is_nobody_there(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

impl ServerPort {
    /// The first address that accepts connections, else the first.
    fn address(&self) -> SocketAddr {
        let answers = |address: &SocketAddr| TcpStream::connect(address).is_ok();
        let otherwise = self.otherwise.filter(|other| !answers(&self.address) && answers(other));
        otherwise.unwrap_or(self.address)
    }
}

fn parse_url(text: &str) -> Result<ServerPort, String> {
    let address = text.strip_prefix("http://").map(|rest| rest.trim_end_matches('/'));
    let port = address.and_then(|address| match address.strip_prefix("localhost:") {
        Some(port) => {
            let port = port.parse().ok()?;
            let otherwise = Some((Ipv6Addr::LOCALHOST, port).into());
            Some(ServerPort { address: (Ipv4Addr::LOCALHOST, port).into(), otherwise })
        }
        None => Some(ServerPort { address: address.parse().ok()?, otherwise: None }),
    });
    let wanted = "expected http://IP:PORT or http://localhost:PORT, like http://127.0.0.1:8722";
    port.ok_or_else(|| wanted.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_an_address_and_a_port() {
        let addr = |text: &str| ServerPort { address: text.parse().unwrap(), otherwise: None };
        assert_eq!(parse_url("http://127.0.0.1:80"), Ok(addr("127.0.0.1:80")));
        assert_eq!(parse_url("http://[::1]:7070/"), Ok(addr("[::1]:7070")));
        let both = ServerPort { otherwise: "[::1]:80".parse().ok(), ..addr("127.0.0.1:80") };
        assert_eq!(parse_url("http://localhost:80/"), Ok(both));
        for text in ["127.0.0.1:80", "https://127.0.0.1:80", "http://a:80", "http://1.2.3.4"] {
            assert!(parse_url(text).is_err(), "{text}");
        }
    }
}
