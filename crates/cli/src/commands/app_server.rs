//! `lastbyte app-server`: the protocol of Codex's app-server, without a daemon.

use std::env;
use std::fs;
use std::future::{pending, ready};
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::str::FromStr;
use std::thread;

use anyhow::{Context, bail};
use lastbyte_engine::{Engine, OrphanReaper, Signal, Survivors};
use lastbyte_keeper::{Guarded, guard};
use lastbyte_server::doors::codex::{self, Door};
use lastbyte_server::listen::{Access, Hosts, Listener, Server};
use lastbyte_server::{Limits, Ports, Sandboxing};
use lastbyte_sys::Status;
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use super::with_signals;
use crate::daemon::keep::own_program;
use crate::daemon::listen;
use crate::exit_code::help::{self, Code};
use crate::sandbox_args::Kind;
use crate::signals::Signals;
use crate::state_folder::StateFolder;
use crate::{exit_code, print, stdio};

/// Serve clients of Codex's app-server: command/exec and process/*
///
/// Serves one client on standard input and output, one JSON message per line; with --listen, any
/// number of clients over WebSockets. When a client disconnects, what it started is stopped.
///
/// When standard input ends, the server stops: running commands are stopped, and the results of
/// commands that have ended are delivered. SIGINT, SIGTERM and SIGHUP do the same for all clients.
#[derive(Debug, clap::Args)]
#[command(after_help = exit_codes())]
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

fn exit_codes() -> String {
    help::list([
        (Code::OK, "standard input ended"),
        help::INVALID_ARGS,
        (
            Code::FAILURE,
            "cannot serve: address in use or not loopback, or cannot create its state directory",
        ),
        (Code::Signal, "ended by signal N"),
    ])
}

/// Returns the exit code.
pub(crate) fn run(args: &Args) -> anyhow::Result<u8> {
    let guarded = Guarded::take().context("cannot reach the guard")?;
    if guarded.is_none() && !args.no_keeper {
        let status = guard(&own_program()).context("cannot start the server")?;
        return Ok(match status {
            Status::Exited(code) => u8::try_from(code).unwrap_or(exit_code::OWN_FAILURE),
            Status::Signalled { signal, .. } => exit_code::from_signal(signal),
        });
    }
    let gone = guarded.map(when_gone).transpose()?;
    lastbyte_sys::own_signals::prepare_for_children();
    // Each command takes some.
    lastbyte_sys::descriptor_limit::raise();
    with_signals(Builder::new_multi_thread(), async |signals| args.execute(signals, gone).await)
}

impl Args {
    async fn execute(
        &self,
        signals: &mut Signals,
        gone: Option<oneshot::Receiver<()>>,
    ) -> anyhow::Result<u8> {
        let folder = StateFolder::create()?;
        let engine = Engine::new(folder.settings()).context("cannot prepare to run commands")?;
        // Adopts orphans, so that nothing a command starts leaves its tree or stays a zombie.
        let _reaper = OrphanReaper::start().context("cannot adopt orphans")?;
        // A directory that was removed has no name any more, but is still the current one.
        let cwd = env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
        let sandboxing = self.sandboxing();
        let settings = codex::Settings { sandboxing, ..codex::Settings::new(cwd, home(&folder)) };
        let door = Door::new(engine.clone(), settings);
        let code = self.serve_until_signalled(&door, signals, gone).await;
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
        gone: Option<oneshot::Receiver<()>>,
    ) -> anyhow::Result<u8> {
        let gone = async {
            match gone {
                Some(gone) => _ = gone.await,
                None => pending().await,
            }
        };
        let mut served = pin!(self.serve(door));
        let signal = tokio::select! {
            served = &mut served => return served.map(|()| 0),
            signal = signals.next() => signal,
            // The guard was killed, and with it the server that others know.
            () = gone => Signal::TERM,
        };
        tokio::select! {
            (served, ()) = async { tokio::join!(served, door.close()) } => served?,
            // A second signal means not to wait for clients.
            _ = signals.next() => {}
        }
        Ok(exit_code::from_signal(signal))
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

/// Tells when the guard is dead.
fn when_gone(guarded: Guarded) -> anyhow::Result<oneshot::Receiver<()>> {
    let (tell, gone) = oneshot::channel();
    let wait = move || {
        guarded.until_gone();
        _ = tell.send(()); // a server that has ended does not listen
    };
    let thread = thread::Builder::new().name("guard".into()).spawn(wait);
    thread.context("cannot start a thread")?;
    Ok(gone)
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

struct StandardInput;
struct StandardOutput;

impl Read for StandardInput {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        Ok(stdio::read_stdin(into)?)
    }
}

impl Write for StandardOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(stdio::write_some(bytes)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
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
