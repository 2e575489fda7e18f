//! `lastbyte app-server`: the protocol of Codex's app-server, without a daemon.

use std::env;
use std::fmt;
use std::future::ready;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::str::FromStr;

use anyhow::{Context, bail};
use lastbyte_engine::{Engine, OrphanReaper, Settings, Survivors};
use lastbyte_server::doors::codex::{self, Door};
use lastbyte_server::listen::{Access, Hosts, Listener, Server};
use lastbyte_server::{Limits, Ports, Sandboxing};
use tokio::runtime::Builder;

use crate::daemon::listen;
use crate::exit_code::help::{self, Code};
use crate::sandbox_args::Kind;
use crate::signals::Signals;
use crate::state_folder::StateFolder;
use crate::{exit_code, own_streams, places, tell};

/// Serve clients of Codex's app-server: command/exec and process/*
///
/// One client on standard input and output, a JSON message a line; or, with --listen, any number of
/// them, each over a WebSocket. What a client has started ends with its connection.
///
/// The end of standard input ends the server: what still runs is stopped, and the answers of
/// commands that had ended are delivered. SIGINT, SIGTERM and SIGHUP do the same for all clients.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment, after_help = exit_codes())]
pub(crate) struct Args {
    /// Where clients come to: stdio://, ws://IP:PORT (this machine's own addresses),
    /// ws://localhost:PORT, which is 127.0.0.1, or unix://PATH
    #[arg(long, value_name = "URL", default_value_t = Listen::Stdio)]
    listen: Listen,

    /// The same as --listen stdio://
    #[arg(long, conflicts_with = "listen")]
    stdio: bool,

    /// The sandbox of commands that name none; they may name any
    #[arg(long, value_name = "KIND", default_value = "full-access")]
    default_sandbox: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Listen {
    Stdio,
    WebSocket(SocketAddr),
    Unix(PathBuf),
}

fn exit_codes() -> String {
    help::list([
        (Code::Is(0), "standard input has ended"),
        help::SENSELESS,
        (
            Code::Is(exit_code::OWN_FAILURE),
            "it cannot serve: the address is taken or not this machine's own, no place for its files",
        ),
        (Code::OfSignal, "it was ended by signal N"),
    ])
}

/// Returns the exit code.
pub(crate) fn run(args: &Args) -> anyhow::Result<u8> {
    lastbyte_sys::own_signals::get_ready_for_children();
    lastbyte_sys::own_signals::survive_file_size_limit();
    // Each command takes some.
    lastbyte_sys::descriptor_limit::raise();
    let runtime =
        Builder::new_multi_thread().enable_all().build().context("cannot start the runtime")?;
    let listening = runtime.enter();
    // Before anything exists that a deadly signal would leave behind.
    let mut signals = Signals::listen().context("cannot listen for signals")?;
    drop(listening);
    let folder = StateFolder::create()?;
    let code = runtime.block_on(args.carry_out(&folder, &mut signals));
    // Nobody waits for a read of standard input that is still under way.
    runtime.shutdown_background();
    code
}

impl Args {
    async fn carry_out(&self, folder: &StateFolder, signals: &mut Signals) -> anyhow::Result<u8> {
        let settings = Settings { hidden: places::hidden(), ..Settings::new(folder.path()) };
        let engine = Engine::new(settings).context("cannot start the engine")?;
        // Nothing that a command starts can leave its tree, and no zombie of it stays.
        let _reaper = OrphanReaper::start().context("cannot adopt orphans")?;
        // A directory that was removed has no name any more, but is still the current one.
        let cwd = env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
        let sandboxing = self.sandboxing();
        let settings = codex::Settings { sandboxing, ..codex::Settings::new(cwd, folder.path()) };
        let door = Door::new(engine.clone(), settings);
        let code = self.serve_until_signalled(&door, signals).await;
        engine.close(Survivors::Stop).await;
        code
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

    async fn serve_until_signalled(
        &self,
        door: &Door,
        signals: &mut Signals,
    ) -> anyhow::Result<u8> {
        let mut served = pin!(self.serve(door));
        let signal = tokio::select! {
            served = &mut served => return served.map(|()| 0),
            signal = signals.next() => signal,
        };
        tokio::select! {
            (served, ()) = async { tokio::join!(served, door.close()) } => served?,
            // Who says it twice does not want to wait for clients.
            _ = signals.next() => {}
        }
        Ok(exit_code::of_signal(signal))
    }

    async fn serve(&self, door: &Door) -> anyhow::Result<()> {
        let listener = match &self.listen {
            Listen::Stdio => {
                let served = codex::lines::serve(door, StandardInput, StandardOutput).await;
                return served.context("cannot start a thread for standard input and output");
            }
            Listen::WebSocket(address) if !address.ip().is_loopback() => bail!(
                "refusing to start non-loopback websocket listener {address} without auth; only \
                 loopback addresses are served"
            ),
            Listen::WebSocket(address) => Listener::tcp(*address, Access::Open)?,
            Listen::Unix(path) => Listener::unix(path)?,
        };
        tell_address(&listener.to_string());
        let server = Server::new(vec![listener], Hosts::default(), Limits::default());
        server.run(codex::router(door.clone()), door.closed(), ready(())).await;
        Ok(())
    }
}

/// In the lines that clients of Codex look for.
fn tell_address(listener: &str) {
    let Some(address) = listener.strip_prefix("http://") else {
        return tell::line(format_args!("app-server listening on {listener}"));
    };
    tell::line("app-server (WebSockets)");
    tell::line(format_args!("  listening on: ws://{address}"));
    tell::line(format_args!("  readyz: http://{address}/readyz"));
    tell::line(format_args!("  healthz: http://{address}/healthz"));
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

impl fmt::Display for Listen {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdio => write!(out, "stdio://"),
            Self::WebSocket(address) => write!(out, "ws://{address}"),
            Self::Unix(path) => write!(out, "unix://{}", path.display()),
        }
    }
}

struct StandardInput;
struct StandardOutput;

impl Read for StandardInput {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        Ok(own_streams::read_stdin(into)?)
    }
}

impl Write for StandardOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(own_streams::write_stdout(bytes)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_it_is_shown() {
        for text in ["stdio://", "ws://127.0.0.1:4500", "ws://[::1]:0", "unix:///run/a b/s"] {
            assert_eq!(text.parse::<Listen>().unwrap().to_string(), text);
        }
        let localhost = "ws://localhost:1".parse::<Listen>().unwrap();
        assert_eq!(localhost.to_string(), "ws://127.0.0.1:1");
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in ["", "stdio", "off", "ws://", "ws://example:1", "unix://", "http://[::1]:1"] {
            assert!(text.parse::<Listen>().is_err(), "{text}");
        }
    }
}
