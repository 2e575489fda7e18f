//! `lastbyte app-server`: the protocol of Codex's app-server, without a daemon.

use std::env;
use std::fs;
use std::future::ready;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, bail};
use lastbyte_server::doors::codex::{self, Door};
use lastbyte_server::listen::{Access, Hosts, Listener, Server};
use lastbyte_server::{Limits, Ports, Sandboxing};

use crate::daemon::listen;
use crate::guarded_server::{self, Guard, GuardGone, ServerState, StandardInput, StandardOutput};
use crate::print;
use crate::sandbox_args::Kind;
use crate::signals::Signals;
use crate::state_folder::StateFolder;

/// Serve clients of Codex's app-server: command/exec and process/*
///
/// Serves one client on standard input and output, one JSON message per line; with --listen, any
/// number of clients over WebSockets. When a client disconnects, what it started is stopped.
///
/// When standard input ends, the server stops: running commands are stopped, and the results of
/// commands that have ended are delivered. SIGINT, SIGTERM and SIGHUP do the same for all clients.
#[derive(Debug, clap::Args)]
#[command(after_help = guarded_server::exit_codes())]
pub(crate) struct Args {
    /// Listen here: stdio://, ws://IP:PORT (loopback addresses only), ws://localhost:PORT (127.0.0.1)
    /// or unix://PATH
    #[arg(long, value_name = "URL", default_value = "stdio://")]
    listen: Listen,

    /// Same as --listen stdio://
    #[arg(long, conflicts_with = "listen")]
    stdio: bool,

    /// Run commands in this sandbox unless they choose one; they may choose any
    #[arg(long, value_name = "KIND", default_value = "full-access")]
    default_sandbox: Kind,

    /// Run as one process: if it is killed by SIGKILL, what its clients started runs on
    #[arg(long)]
    no_keeper: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Listen {
    Stdio,
    WebSocket(SocketAddr),
    Unix(PathBuf),
}

/// Returns the exit code.
pub(crate) fn run(args: &Args) -> anyhow::Result<u8> {
    let by = if args.no_keeper { Guard::Nobody } else { Guard::Parent };
    guarded_server::run(by, async |signals, gone| args.execute(signals, gone).await)
}

impl Args {
    async fn execute(&self, signals: &mut Signals, gone: GuardGone) -> anyhow::Result<u8> {
        let state = ServerState::create()?;
        let (sandboxing, home) = (self.sandboxing(), home(&state.folder));
        let settings = codex::Settings { sandboxing, ..codex::Settings::new(&state.cwd, home) };
        let door = Door::new(state.engine.clone(), settings);
        state.serve(self.serve(&door), door.close(), signals, gone).await
    }

    fn sandboxing(&self) -> Sandboxing {
        Sandboxing {
            default: self.default_sandbox.sandbox(),
            ports: match self.listen {
                Listen::WebSocket(_) => Ports::Open,
                Listen::Stdio | Listen::Unix(_) => Ports::Guarded,
            },
        }
    }

    async fn serve(&self, door: &Door) -> anyhow::Result<()> {
        let listener = match &self.listen {
            Listen::Stdio => {
                let served = codex::serve_lines(door, StandardInput, StandardOutput).await;
                return served.context("cannot start a thread for standard input and output");
            }
            Listen::WebSocket(address) if !address.ip().is_loopback() => bail!(
                "refusing to start non-loopback websocket listener {address} without auth; only \
                 loopback addresses are served"
            ),
            Listen::WebSocket(address) => Listener::tcp(*address, Access::Open)?,
            Listen::Unix(path) => Listener::unix(path)?,
        };
        print_address(&listener.to_string());
        let limits = Limits::within_descriptors(lastbyte_sys::descriptor_limit::own());
        let server = Server::new(vec![listener], Hosts::default(), limits);
        server.run(codex::router(door.clone()), door.closed(), ready(())).await;
        Ok(())
    }
}

/// What clients are told as Codex's folder: the one that they have chosen for it, if there is one.
fn home(folder: &StateFolder) -> PathBuf {
    let chosen = env::var_os("CODEX_HOME").filter(|chosen| !chosen.is_empty());
    let chosen = chosen.and_then(|chosen| fs::canonicalize(chosen).ok());
    chosen.unwrap_or_else(|| folder.path().to_owned())
}

/// In the lines that clients of Codex look for.
fn print_address(listener: &str) {
    let Some(address) = listener.strip_prefix("http://") else {
        return print::message(format_args!("app-server listening on {listener}"));
    };
    print::message("app-server (WebSockets)");
    print::message(format_args!("  listening on: ws://{address}"));
    print::message(format_args!("  readyz: http://{address}/readyz"));
    print::message(format_args!("  healthz: http://{address}/healthz"));
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected =
            || "expected stdio://, ws://IP:PORT, ws://localhost:PORT or unix://PATH".to_owned();
        match text.split_once("://") {
            Some(("stdio", "")) => Ok(Self::Stdio),
            Some(("ws", address)) => {
                listen::parse(address).map(Self::WebSocket).map_err(|_| expected())
            }
            Some(("unix", path)) if !path.is_empty() => Ok(Self::Unix(path.into())),
            _ => Err(expected()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read() {
        let web_socket = |address: &str| Listen::WebSocket(address.parse().unwrap());
        for (text, want) in [
            ("stdio://", Listen::Stdio),
            ("ws://127.0.0.1:4500", web_socket("127.0.0.1:4500")),
            ("ws://[::1]:0", web_socket("[::1]:0")),
            ("ws://localhost:1", web_socket("127.0.0.1:1")),
            ("unix:///run/a b/s", Listen::Unix("/run/a b/s".into())),
        ] {
            assert_eq!(text.parse::<Listen>().unwrap(), want);
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in ["", "stdio", "off", "ws://", "ws://example:1", "unix://", "http://[::1]:1"] {
            assert!(text.parse::<Listen>().is_err(), "{text}");
        }
    }
}
