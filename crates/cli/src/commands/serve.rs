//! `lastbyte serve`: the daemon.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf, absolute};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use lastbyte_engine::{
    Engine, EnvironmentProvider, History, OrphanReaper, Restored, Settings, Signal,
};
use lastbyte_server::doors::codex;
use lastbyte_server::listen::{Access, Hosts, Listener, Server, Token};
use lastbyte_server::{App, ENV_HOOK_PATIENCE as PATIENCE, EnvHook, Limits, Ports, Sandboxing};
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until, timeout};
use tracing_subscriber::filter::LevelFilter;

use crate::daemon::address::{self, AddressFile};
use crate::daemon::closing;
use crate::daemon::listen;
use crate::daemon::lock::StateLock;
use crate::daemon::log::{self, Log};
use crate::daemon::supervisor::{self, HandedOver, State};
use crate::exit_code::help::{self, Code};
use crate::sandbox_args::Kind;
use crate::signals::Signals;
use crate::{config, exit_code, places, tell, usage};

/// Run commands for those who ask over HTTP, until it is stopped
///
/// For each address a line on standard output says when it can be asked there; nothing else is
/// written to it. The log is on standard error, as JSON unless that is a terminal.
///
/// Every option can be a line of the configuration file, or a variable: LASTBYTE_LISTEN for
/// --listen. `lastbyte config show` says what is set and where.
///
/// The socket is for this user alone. Whoever comes by TCP needs the token that is made on the
/// first start and kept in the state folder.
///
/// SIGTERM, SIGINT (Ctrl-C), SIGHUP and SIGQUIT stop it with everything it has started, and it ends
/// with 0; the second one kills, and it ends with 128 and its number.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment, after_help = exit_codes())]
pub(crate) struct Args {
    /// Keep output and token here [default: $XDG_STATE_HOME/lastbyte or ~/.local/state/lastbyte]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,

    /// Listen on this unix socket [default: $XDG_RUNTIME_DIR/lastbyte/socket; in the state folder
    /// if that is not set or --state is given]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,

    /// Listen on this address too, like 127.0.0.1:8722 or localhost:8722, which is the same; port 0
    /// is one that is free; can be repeated
    #[arg(long, value_name = "IP:PORT", value_parser = listen::parse)]
    listen: Vec<SocketAddr>,

    /// Ask nobody for a token; only for loopback addresses
    #[arg(long)]
    no_auth: bool,

    /// Answer to this host name too, not only to addresses and localhost; can be repeated
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,

    /// Run commands that name no directory in this one
    #[arg(long, value_name = "DIR")]
    workdir: Option<PathBuf>,

    /// Ask this shell text, at each start, for the environment of the command: a JSON object or
    /// NUL-separated NAME=VALUE pairs. If it fails or takes 5 s, the server's own is used
    #[arg(long, value_name = "CMD")]
    env_hook: Option<OsString>,

    /// The sandbox of commands that name none; they may name any
    #[arg(long, value_name = "KIND", default_value = "full-access")]
    default_sandbox: Kind,

    /// Tell so much: error, warn, info, debug or off
    #[arg(long, value_name = "LEVEL", default_value = "info", value_parser = log::parse)]
    log: LevelFilter,

    #[arg(long, value_name = "PATH", help = config::HELP)]
    config: Option<PathBuf>,
}

/// How long requests have once all processes have ended.
const GRACE: Duration = Duration::from_secs(2);

fn exit_codes() -> String {
    help::list([
        (Code::Is(0), "it was stopped, with everything it has started"),
        help::UNUSABLE,
        (
            Code::Is(exit_code::OWN_FAILURE),
            "it cannot serve: the address is taken, no place for its files, another server has them",
        ),
        (Code::OfSignal, "signal N was the second, and killed what was being stopped"),
    ])
}

/// Returns the exit code.
pub(crate) fn run(args: &Args) -> anyhow::Result<u8> {
    let handed_over = HandedOver::take()?;
    args.check(&handed_over)?;
    lastbyte_sys::own_signals::get_ready_for_children();
    lastbyte_sys::own_signals::survive_file_size_limit();
    // Each process and each connection takes some.
    lastbyte_sys::descriptor_limit::raise();
    let runtime =
        Builder::new_multi_thread().enable_all().build().context("cannot start the runtime")?;
    let state = places::state_dir(args.state.as_deref())?;
    let code = runtime.block_on(async {
        // Before anything exists that a deadly signal would leave behind.
        let mut signals = Signals::listen().context("cannot listen for signals")?;
        let _lock = StateLock::take(&state)?;
        let log = Log::start(args.log).context("cannot start a thread for the log")?;
        let cut_short = args.serve(&state, handed_over, &mut signals).await;
        log.finish();
        cut_short
    });
    // Nobody waits for a look at /proc that is still under way.
    runtime.shutdown_background();
    Ok(code?.map_or(0, exit_code::of_signal))
}

impl Args {
    fn check(&self, handed_over: &HandedOver) -> Result<(), usage::Error> {
        let given = handed_over.tcp.iter().filter_map(|listener| listener.local_addr().ok());
        let mut all = self.listen.iter().copied().chain(given);
        match all.find(|address| self.no_auth && !address.ip().is_loopback()) {
            Some(address) => Err(usage::Error::OpenToOthers { address }),
            None => Ok(()),
        }
    }

    /// Returns the signal that did not let everything come to its end.
    async fn serve(
        &self,
        state: &Path,
        handed_over: HandedOver,
        signals: &mut Signals,
    ) -> anyhow::Result<Option<Signal>> {
        address::forget(state).context("cannot remove the address of an earlier server")?;
        let sandboxing = self.sandboxing(&handed_over);
        let listeners = self.listeners(state, handed_over)?;
        let socket = listeners.iter().find_map(Listener::socket_file);
        let _address = AddressFile::write(state, socket.context("there is no socket file")?)
            .context("cannot write the server's address into the state folder")?;
        let engine = Engine::new(self.settings(state)?).context("cannot start the engine")?;
        // Nothing that a command starts can leave its tree, and no zombie of it stays.
        let _reaper = OrphanReaper::start().context("cannot adopt orphans")?;
        tell_restored(engine.restored());
        let limits = Limits::default();
        let app = App::new(engine.clone(), limits).sandboxed(sandboxing.clone());
        let codex = self.codex_door(state, &engine, sandboxing);
        let lines: String =
            listeners.iter().map(|listener| format!("listening on {listener}\n")).collect();
        let server = Server::new(listeners, Hosts::new(self.host.clone()), limits)
            .counted_in(Arc::clone(&app.traffic));
        let (shutdown, shut_down) = oneshot::channel();
        let (closed, is_closed) = oneshot::channel::<()>();
        // What is dropped unsent has happened as well.
        let serving = tokio::spawn(server.run(
            lastbyte_server::router(app.clone()).merge(codex::route(codex.clone())),
            async { _ = shut_down.await },
            async {
                _ = is_closed.await;
                sleep_until(Instant::now() + GRACE).await;
            },
        ));
        // Whoever knows the addresses can ask without having read them.
        if let Err(error) = tell::result(&lines) {
            tracing::warn!("{error:#}");
        }
        tracing::info!(pid = std::process::id(), state = %state.display(), "ready");
        supervisor::notify(State::Ready);
        until_asked_to_go(signals, &app).await;
        supervisor::notify(State::Stopping);
        drop::<oneshot::Sender<()>>(shutdown);
        let cut_short = closing::close(&engine, signals.next()).await;
        drop(closed);
        // Its connections are no longer HTTP's to end.
        _ = timeout(GRACE, codex.close()).await;
        if cut_short.is_none() {
            serving.await.context("the server has failed")?;
        }
        tracing::info!("bye");
        Ok(cut_short)
    }

    /// A socket file, our own unless one was handed over, and then the ports.
    fn listeners(&self, state: &Path, given: HandedOver) -> anyhow::Result<Vec<Listener>> {
        let socket = places::socket_path(self.state.as_deref(), self.socket.as_deref())?;
        let mut listeners = match given.unix.is_empty() {
            true => vec![Listener::unix(&socket)?],
            false => {
                given.unix.into_iter().map(Listener::handed_over_unix).collect::<Result<_, _>>()?
            }
        };
        let no_port = self.listen.is_empty() && given.tcp.is_empty();
        let access = match no_port || self.no_auth {
            true => Access::Open,
            false => {
                let token = Token::read_or_create(state)?;
                tell::line(format_args!("the token is in {}", Token::file_in(state).display()));
                Access::Token(Arc::new(token))
            }
        };
        for address in &self.listen {
            listeners.push(Listener::tcp(*address, access.clone())?);
        }
        for port in given.tcp {
            listeners.push(Listener::handed_over_tcp(port, access.clone())?);
        }
        Ok(listeners)
    }

    fn settings(&self, state: &Path) -> anyhow::Result<Settings> {
        let workdir = self.workdir.as_ref().map(absolute).transpose();
        let workdir = workdir.context("--workdir names no directory")?;
        let hook = |command: &OsString| EnvHook::new(command, state.join("env-hook"), PATIENCE);
        let hook = self.env_hook.as_ref().map(hook).transpose();
        let hook = hook.context("cannot make a place for --env-hook")?;
        let provider = hook.map(|hook| Arc::new(hook) as Arc<dyn EnvironmentProvider>);
        Ok(Settings {
            workdir,
            provider,
            history: History::Journal,
            hidden: places::hidden(),
            environment: supervisor::environment_of_commands(),
            ..Settings::new(state)
        })
    }

    /// Its clients' commands run where the server was started unless they are told where.
    fn codex_door(&self, state: &Path, engine: &Engine, sandboxing: Sandboxing) -> codex::Door {
        let cwd = self.workdir.as_ref().and_then(|workdir| absolute(workdir).ok());
        let cwd = cwd.or_else(|| std::env::current_dir().ok()).unwrap_or_else(|| "/".into());
        let settings = codex::Settings { sandboxing, ..codex::Settings::new(cwd, state) };
        codex::Door::new(engine.clone(), settings)
    }

    fn sandboxing(&self, given: &HandedOver) -> Sandboxing {
        let no_port = self.listen.is_empty() && given.tcp.is_empty();
        Sandboxing {
            default: self.default_sandbox.sandbox(),
            ports: match self.no_auth && !no_port {
                true => Ports::Open,
                false => Ports::Guarded,
            },
        }
    }
}

/// What an earlier server has left, and what of it is damaged.
fn tell_restored(restored: &Restored) {
    let Restored { ended, lost, torn_bytes, unknown_records, removed_files } = *restored;
    if ended + lost > 0 {
        tracing::info!(ended, lost, "processes of an earlier server are here again");
    }
    if torn_bytes > 0 || unknown_records > 0 {
        tracing::warn!(torn_bytes, unknown_records, "a part of the journal could not be read");
    }
    if removed_files > 0 {
        tracing::info!(removed_files, "files of no known process were removed");
    }
}

async fn until_asked_to_go(signals: &mut Signals, app: &App) {
    tokio::select! {
        signal = signals.next() => tracing::info!(%signal, "shutting down"),
        () = app.shutdown_asked() => tracing::info!("shutting down, as a client asked"),
    }
}
