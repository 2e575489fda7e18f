//! `lastbyte exec-server`: the protocol of Codex's exec-server, without a daemon.

use std::future::ready;
use std::net::SocketAddr;
use std::str::FromStr;

use anyhow::{Context, bail};
use lastbyte_server::doors::exec_server::{self, Door, SecretPath, Settings};
use lastbyte_server::listen::{Access, Hosts, Listener, Server};
use lastbyte_server::{Limits, Ports, Sandboxing};

use crate::guarded_server::{self, Guard, GuardGone, ServerState, StandardInput, StandardOutput};
use crate::print;
use crate::sandbox_args::Kind;
use crate::signals::Signals;

/// Run the commands of Codex agents: process/* of Codex's exec-server
///
/// Prints its address, for CODEX_EXEC_SERVER_URL. What an agent starts is stopped when the agent has been
/// gone for 30 seconds; one that comes back sooner misses nothing.
///
/// With --listen stdio, serves one client on standard input and output, one JSON message per line, and
/// stops when standard input ends. SIGINT, SIGTERM and SIGHUP stop the server and everything it runs.
#[derive(Debug, clap::Args)]
#[command(after_help = guarded_server::exit_codes())]
pub(crate) struct Args {
    /// Listen here: ws://IP:PORT (loopback addresses only), stdio or stdio://
    #[arg(long, value_name = "URL", default_value = "ws://127.0.0.1:0")]
    listen: Listen,

    /// Serve at ws://IP:PORT without a secret path: every user of this machine can run commands
    #[arg(long)]
    no_auth: bool,

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
}

/// Returns the exit code.
pub(crate) fn run(args: &Args) -> anyhow::Result<u8> {
    let by = if args.no_keeper { Guard::Nobody } else { Guard::Parent };
    guarded_server::run(by, async |signals, gone| args.execute(signals, gone).await)
}

/// Performs one operation on files, under the sandbox that this process is in.
pub(crate) fn file_helper() -> anyhow::Result<u8> {
    exec_server::perform_file_request(StandardInput, StandardOutput)?;
    Ok(0)
}

impl Args {
    async fn execute(&self, signals: &mut Signals, gone: GuardGone) -> anyhow::Result<u8> {
        let state = ServerState::create()?;
        let settings = Settings {
            sandboxing: self.sandboxing(),
            // The same program in the child, also if the file was replaced.
            file_helper: vec!["/proc/self/exe".into(), "file-helper".into()],
            ..Settings::new(&state.cwd)
        };
        let door = Door::new(state.engine.clone(), settings);
        state.serve(self.serve(&door), door.close(), signals, gone).await
    }

    fn sandboxing(&self) -> Sandboxing {
        let ports = match self.listen {
            Listen::WebSocket(_) if self.no_auth => Ports::Open,
            Listen::WebSocket(_) | Listen::Stdio => Ports::Guarded,
        };
        Sandboxing { default: self.default_sandbox.sandbox(), ports }
    }

    async fn serve(&self, door: &Door) -> anyhow::Result<()> {
        let address = match self.listen {
            Listen::Stdio => {
                let served = exec_server::serve_lines(door, StandardInput, StandardOutput).await;
                return served.context("cannot start a thread for standard input and output");
            }
            Listen::WebSocket(address) if !address.ip().is_loopback() => {
                bail!("cannot listen on {address}: only loopback addresses are served")
            }
            Listen::WebSocket(address) => address,
        };
        let path = if self.no_auth { Ok(SecretPath::open()) } else { SecretPath::random() };
        let path = path.context("cannot create a secret path")?;
        let listener = Listener::tcp(address, Access::Open)?;
        print_url(&listener.to_string(), &path)?;
        let limits = Limits::within_descriptors(lastbyte_sys::descriptor_limit::own());
        let server = Server::new(vec![listener], Hosts::default(), limits);
        server.run(exec_server::router(door.clone(), path), door.closed(), ready(())).await;
        Ok(())
    }
}

/// On standard output, where the programs that start a server look for it.
fn print_url(listener: &str, path: &SecretPath) -> anyhow::Result<()> {
    let address = listener.strip_prefix("http://").unwrap_or(listener);
    print::result(format!("ws://{address}{}\n", path.suffix()))
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let address = text.strip_prefix("ws://").and_then(|address| address.parse().ok());
        match (text, address) {
            ("stdio" | "stdio://", _) => Ok(Self::Stdio),
            (_, Some(address)) => Ok(Self::WebSocket(address)),
            (_, None) => Err("expected ws://IP:PORT or stdio".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read() {
        let web_socket = |address: &str| Ok(Listen::WebSocket(address.parse().unwrap()));
        assert_eq!("stdio".parse(), Ok(Listen::Stdio));
        assert_eq!("stdio://".parse(), Ok(Listen::Stdio));
        assert_eq!("ws://127.0.0.1:4500".parse(), web_socket("127.0.0.1:4500"));
        assert_eq!("ws://[::1]:0".parse(), web_socket("[::1]:0"));
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in ["", "ws://", "ws://localhost:1", "ws://127.0.0.1", "http://[::1]:1", "off"] {
            assert!(text.parse::<Listen>().is_err(), "{text}");
        }
    }
}
