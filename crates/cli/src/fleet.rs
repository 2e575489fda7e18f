//! `--fleet`: a gateway inside of this program, on a socket that nobody else can reach; and what makes
//! a server a node or a gateway.

use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use anyhow::Context;
use lastbyte_client::Client;
use lastbyte_engine::{Engine, IdTag};
use lastbyte_fleet::{Broker, Gateway, Joined, Node, NodeSettings, id_tag, is_node_name};
use lastbyte_server::Limits;
use lastbyte_server::listen::{Hosts, Listener, Server};
use rustix::fs::{Mode, OFlags, open};
use tokio::sync::OnceCell;

use crate::usage;

const HEADING: &str = "Fleet options";

/// How to log in to the broker.
#[derive(Debug, Clone, clap::Args)]
struct LoginArgs {
    /// Log in to NATS with the credentials or the NKEY seed in this file
    #[arg(long, help_heading = HEADING, value_name = "FILE")]
    nats_creds: Option<PathBuf>,

    /// Trust only the certificate authorities in this file when connecting to NATS by TLS
    #[arg(long, help_heading = HEADING, value_name = "FILE")]
    nats_ca: Option<PathBuf>,
}

impl LoginArgs {
    fn broker(&self, url: &str) -> Broker {
        Broker {
            url: url.to_owned(),
            credentials: self.nats_creds.clone(),
            authorities: self.nats_ca.clone(),
        }
    }
}

/// A fleet instead of a server.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct FleetArgs {
    /// Use the servers that have joined the fleet at this NATS URL, like nats://127.0.0.1:4222; several
    /// with commas between them
    #[arg(long, help_heading = HEADING, value_name = "URL", conflicts_with_all = ["socket", "state", "server"])]
    fleet: Option<String>,

    #[command(flatten)]
    login: LoginArgs,
}

/// The socket of the gateway of this program, and what keeps it: its file is gone.
static SOCKET: OnceCell<(PathBuf, OwnedFd)> = OnceCell::const_new();

impl FleetArgs {
    pub(crate) fn is_given(&self) -> bool {
        self.fleet.is_some()
    }

    /// A client of the fleet, if one is named.
    pub(crate) async fn client(&self) -> anyhow::Result<Option<Client>> {
        let Some(url) = &self.fleet else { return Ok(None) };
        let (socket, _) = SOCKET.get_or_try_init(|| serve_here(self.login.broker(url))).await?;
        Ok(Some(Client::unix(socket)))
    }
}

async fn serve_here(broker: Broker) -> anyhow::Result<(PathBuf, OwnedFd)> {
    let gateway = Gateway::connect(&broker).await?;
    let (listener, socket) = private_socket().context("cannot create a socket for the fleet")?;
    let listeners = vec![Listener::handed_over_unix(listener)?];
    let server = Server::new(listeners, Hosts::default(), Limits::default());
    let never = std::future::pending;
    tokio::spawn(server.run(gateway.alone(), never(), never()));
    // The file is gone, and this leads to the socket all the same.
    Ok((format!("/proc/self/fd/{}", socket.as_raw_fd()).into(), socket))
}

/// In a folder for this user alone, which is removed at once: so nothing is left behind, however this
/// program ends.
fn private_socket() -> std::io::Result<(UnixListener, OwnedFd)> {
    let name = format!("lastbyte-fleet-{}", uuid::Uuid::new_v4().simple());
    let folder = std::env::temp_dir().join(name);
    std::os::unix::fs::DirBuilderExt::mode(&mut std::fs::DirBuilder::new(), 0o700)
        .create(&folder)?;
    let path = folder.join("socket");
    let made = UnixListener::bind(&path).and_then(|listener| {
        Ok((listener, open(&path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?))
    });
    std::fs::remove_dir_all(&folder)?;
    made
}

/// What makes a server one of a fleet.
#[derive(Debug, clap::Args)]
pub(crate) struct JoinArgs {
    /// Join the fleet at this NATS URL, like nats://127.0.0.1:4222, as a node: all clients of the fleet
    /// can then use this server
    #[arg(long, help_heading = HEADING, value_name = "URL")]
    nats: Option<String>,

    #[command(flatten)]
    login: LoginArgs,

    /// Join under this name: letters, digits, `-` and `_` [default: the name of this machine]
    #[arg(long, help_heading = HEADING, value_name = "NAME", requires = "nats", value_parser = parse_name)]
    node: Option<String>,

    /// Label this node, for `lastbyte start --on NAME=VALUE`; repeatable
    #[arg(long, help_heading = HEADING, value_name = "NAME=VALUE", requires = "nats", value_parser = parse_label)]
    label: Vec<(String, String)>,

    /// Take this many commands at one time from the fleet
    #[arg(long, help_heading = HEADING, value_name = "COUNT", requires = "nats", default_value_t = 1000)]
    slots: u32,

    /// Be a gateway, not a node: run nothing here, and pass requests on to the nodes of the fleet
    #[arg(long, help_heading = HEADING, requires = "nats", conflicts_with_all = ["node", "label"])]
    gateway: bool,
}

impl JoinArgs {
    /// What the ids of a node have in common.
    pub(crate) fn id_tag(&self) -> anyhow::Result<Option<IdTag>> {
        let is_node = self.nats.is_some() && !self.gateway;
        is_node.then(|| self.name().map(|name| id_tag(&name))).transpose()
    }

    pub(crate) async fn join(&self, engine: &Engine, state: &Path) -> anyhow::Result<Joined> {
        let Some(url) = &self.nats else { return Ok(Joined::Nothing) };
        let broker = self.login.broker(url);
        if self.gateway {
            return Ok(Joined::Gateway(Gateway::connect(&broker).await?));
        }
        let labels: BTreeMap<_, _> = self.label.iter().cloned().collect();
        let (name, state) = (self.name()?, state.to_owned());
        let settings = NodeSettings { name, labels, slots: self.slots, state };
        Ok(Joined::Node(Node::join(broker, settings, engine.clone())?))
    }

    fn name(&self) -> anyhow::Result<String> {
        if let Some(name) = &self.node {
            return Ok(name.clone());
        }
        let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let name: String = machine.chars().map(|c| if c == '.' { '-' } else { c }).collect();
        if is_node_name(&name) { Ok(name) } else { Err(usage::Error::NodeName { name }.into()) }
    }
}

fn parse_name(text: &str) -> Result<String, String> {
    let wanted = "expected at most 64 letters, digits, `-` and `_`";
    if is_node_name(text) { Ok(text.to_owned()) } else { Err(wanted.into()) }
}

fn parse_label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".into()),
    }
}
