//! `lastbyte serve`: the daemon.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf, absolute};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use lastbyte_engine::{
    Engine, EnvironmentProvider, FromKeeper, History, IdTag, OrphanReaper, Restored, Settings,
    Signal,
};
use lastbyte_keeper::Joined;
use lastbyte_server::doors::codex;
use lastbyte_server::listen::{
    AcceptedTokens, Access, CreatedTokens, Hosts, Listener, PageTimes, Pages, Server, Token,
};
use lastbyte_server::{App, ENV_HOOK_PATIENCE as PATIENCE, EnvHook, Limits, Ports, Sandboxing};
use lastbyte_sys::resolve::check_folder;
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until, timeout};
use tracing_subscriber::filter::LevelFilter;

use super::with_signals;
use crate::cap_args::CapArgs;
use crate::daemon::closing;
use crate::daemon::instance::{self, AddressFile, StateLock};
use crate::daemon::journal_watch;
use crate::daemon::keep::{self, Bound, SocketKind};
use crate::daemon::kept::{self, Kept};
use crate::daemon::listen;
use crate::daemon::log::{self, Log};
use crate::daemon::oom;
use crate::daemon::supervisor::{self, HandedOver};
use crate::daemon::untraceable;
use crate::daemon::upgrade;
use crate::exit_code::help::{self, Code};
use crate::keep_args::KeepArgs;
use crate::sandbox_args::Kind;
use crate::signals::Signals;
use crate::{config, exit_code, paths, print, usage};

/// Run the server: run commands for clients over HTTP until stopped
///
/// Prints a line on standard output for each address that is ready, and nothing else. The log goes to
/// standard error, as JSON unless that is a terminal; lines for people start with `lastbyte: `. Once the
/// server is ready, the time in UTC is before them, unless that is a terminal or systemd's journal.
///
/// Every option can also be set in the configuration file or by an environment variable:
/// LASTBYTE_LISTEN for --listen. `lastbyte config show` prints what is set and where.
///
/// Only this user can use the socket. TCP clients need the token, which is created on the first start
/// and kept in the state directory.
///
/// The process that does the work is a child of this one, which starts another if it crashes.
///
/// SIGTERM, SIGINT (Ctrl-C), SIGHUP and SIGQUIT stop the server and everything it started, and the
/// exit code is 0; a second signal kills, and the exit code is 128 plus its number.
#[derive(Debug, clap::Args)]
#[command(after_help = exit_codes())]
pub(crate) struct Args {
    /// Keep output and the token in this directory
    /// [default: $XDG_STATE_HOME/lastbyte or ~/.local/state/lastbyte]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,

    /// Listen on this unix socket [default: $XDG_RUNTIME_DIR/lastbyte/socket; in the state directory
    /// if that is not set or --state is given]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,

    /// Also listen on this TCP address, like 127.0.0.1:8722 or localhost:8722 (the same); port 0 picks
    /// a free port; repeatable
    #[arg(long, value_name = "IP:PORT", value_parser = listen::parse)]
    listen: Vec<SocketAddr>,

    /// Do not require a token; loopback addresses only
    #[arg(long)]
    no_auth: bool,

    /// Also accept requests for this host name, not only for addresses and localhost; repeatable
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,

    /// Run commands in this directory unless they name one
    #[arg(long, value_name = "DIR")]
    workdir: Option<PathBuf>,

    /// Run this shell command at each start to get the new command's environment: it prints a JSON
    /// object or NUL-separated NAME=VALUE pairs. If it fails or takes 5 s, the server's own is used
    #[arg(long, value_name = "CMD")]
    env_hook: Option<OsString>,

    /// Run commands in this sandbox unless they choose one; they may choose any
    #[arg(long, value_name = "KIND", default_value = "full-access")]
    default_sandbox: Kind,

    #[command(flatten)]
    keep: KeepArgs,

    #[command(flatten)]
    caps: CapArgs,

    /// Serve in this process, not in a child that is started again when it crashes: a crash then loses
    /// all running commands
    #[arg(long)]
    no_keeper: bool,

    /// Set the log level: error, warn, info, debug or off
    #[arg(long, value_name = "LEVEL", default_value = "info", value_parser = log::parse)]
    log: LevelFilter,

    #[arg(long, value_name = "PATH", help = config::HELP)]
    config: Option<PathBuf>,

    #[cfg(feature = "fleet")]
    #[command(flatten)]
    join: crate::fleet::JoinArgs,
}

/// How long requests have once all processes have ended.
const GRACE: Duration = Duration::from_secs(2);

fn exit_codes() -> String {
    help::list([
        (Code::OK, "stopped, with everything it started"),
        help::INVALID_ARGS_OR_SETTINGS,
        (
            Code::FAILURE,
            "cannot serve: address in use, or state directory not writable or used by another server",
        ),
        (Code::Signal, "killed what was being stopped, at a second signal N"),
    ])
}

/// Returns the exit code.
pub(crate) fn run(args: &Args, joined: Option<Joined>) -> anyhow::Result<u8> {
    if let Some(joined) = joined {
        return args.work(joined);
    }
    let handed_over = HandedOver::take()?;
    let inherited = handed_over.tcp.iter().filter_map(|listener| listener.local_addr().ok());
    args.check(inherited)?;
    let state = paths::state_dir(args.state.as_deref())?;
    // Before there is a child. Without it an ending does not say that memory ran out.
    _ = lastbyte_sys::cgroup::enable_controllers();
    if args.no_keeper {
        return args.serve_alone(&state, handed_over);
    }
    keep::keep(&state, || {
        let socket = paths::socket_path(args.state.as_deref(), args.socket.as_deref())?;
        Bound::new(&socket, &args.listen, handed_over)
    })
}

impl Args {
    /// Whether these options and the inherited ports go together.
    pub(super) fn check(
        &self,
        inherited: impl IntoIterator<Item = SocketAddr>,
    ) -> Result<(), usage::Error> {
        let mut all = self.listen.iter().copied().chain(inherited);
        match all.find(|address| self.no_auth && !address.ip().is_loopback()) {
            Some(address) => Err(usage::Error::OpenToOthers { address }),
            None => self.keep.check().and_then(|()| self.check_workdir()),
        }
    }

    /// Without this, commands would run in the home directory and nobody would be told.
    fn check_workdir(&self) -> Result<(), usage::Error> {
        let Some(path) = &self.workdir else { return Ok(()) };
        check_folder(path).map_err(|errno| usage::Error::Workdir { path: path.clone(), errno })
    }

    /// As a worker. Returns the exit code.
    fn work(&self, joined: Joined) -> anyhow::Result<u8> {
        let joined = Arc::new(joined);
        if !joined.first {
            log::show_times_of_messages();
        }
        let given = joined
            .take_listeners()
            .into_iter()
            .filter_map(|(kind, listener)| Some((SocketKind::from_number(kind)?, listener)));
        let given: Vec<_> = given.collect();
        let state = paths::state_dir(self.state.as_deref())?;
        let serve = async |signals: &mut Signals| {
            let (kept_by, upgrades) = kept::kept_by(&joined);
            let _beating = kept::beat(Arc::clone(&joined), Arc::clone(&kept_by), &state);
            let listeners = self.kept_listeners(&state, given, joined.first)?;
            self.serve(&state, listeners, Some((&joined, &kept_by, upgrades)), signals).await
        };
        let serving = self.in_runtime(serve, |error| {
            if !joined.first {
                // As if it had crashed, while the owners of processes still live.
                print::message(format_args!("{error:#}"));
                joined.leave_to_the_next();
            }
        });
        joined.leaving(serving.as_ref().map_or_else(exit_code::from_error, |code| *code));
        serving
    }

    /// Without a keeper. Returns the exit code.
    fn serve_alone(&self, state: &Path, handed_over: HandedOver) -> anyhow::Result<u8> {
        let serve = async |signals: &mut Signals| {
            let _lock = StateLock::take(state)?;
            instance::forget_address(state)
                .context("cannot remove the address file of an earlier server")?;
            let listeners = self.listeners(state, handed_over)?;
            let socket = listeners.iter().find_map(Listener::socket_file);
            let socket = socket.context("no listener has a socket file")?;
            let _address = AddressFile::write(state, socket)
                .context("cannot write the address file in the state directory")?;
            self.serve(state, listeners, None, signals).await
        };
        self.in_runtime(serve, |_| {})
    }

    /// Serves by this function, which returns the second signal, if one cut the shutdown short. The
    /// other function is called if it fails, before anything ends.
    fn in_runtime(
        &self,
        serve: impl AsyncFnOnce(&mut Signals) -> anyhow::Result<Option<Signal>>,
        on_error: impl FnOnce(&anyhow::Error),
    ) -> anyhow::Result<u8> {
        lastbyte_sys::own_signals::prepare_for_children();
        // Each process and each connection takes some.
        lastbyte_sys::descriptor_limit::raise();
        let cut_short = with_signals(Builder::new_multi_thread(), async |signals| {
            let log = Log::start(self.log).context("cannot start a thread for the log")?;
            let cut_short = serve(signals).await;
            log.finish();
            cut_short.inspect_err(on_error)
        })?;
        Ok(cut_short.map_or(0, exit_code::from_signal))
    }

    /// Returns the second signal, if one cut the shutdown short.
    async fn serve(
        &self,
        state: &Path,
        listeners: Vec<Listener>,
        kept: Option<Kept<'_>>,
        signals: &mut Signals,
    ) -> anyhow::Result<Option<Signal>> {
        let sandboxing = self.sandboxing(&listeners);
        let joined = kept.as_ref().map(|(joined, ..)| *joined);
        let settings = self.settings(state)?;
        let (engine, _reaper) = match joined {
            None => {
                let engine = Engine::new(settings).context("cannot prepare to run commands")?;
                // Adopts orphans, so that nothing a command starts leaves its tree or stays a zombie.
                (engine, Some(OrphanReaper::start().context("cannot adopt orphans")?))
            }
            Some(joined) => {
                let engine = joined.copy_descriptors().and_then(|inherited| {
                    let (registry, keeper) = (joined.registry, joined.keeper);
                    Engine::kept(settings, FromKeeper { registry, keeper, inherited })
                });
                let engine = engine.context(if joined.first {
                    "cannot prepare to run commands"
                } else {
                    "cannot take over from the worker before"
                })?;
                joined.has_taken_over();
                (engine, None)
            }
        };
        // It starts a process or two, and clients are waiting.
        tokio::task::spawn_blocking(untraceable::become_untraceable_if_possible);
        log_restored(engine.restored());
        let _preferring = oom::begin(engine.clone());
        let _watching = engine.journal_state().map(journal_watch::begin);
        let limits = Limits::within_descriptors(lastbyte_sys::descriptor_limit::own());
        let tokens = match listeners.iter().find_map(Listener::created_tokens) {
            Some(tokens) => Arc::clone(tokens),
            None => Arc::new(CreatedTokens::open(state)?),
        };
        let app = App::new(engine.clone(), limits).sandboxed(sandboxing.clone());
        let takes_over = joined.is_some_and(|joined| !joined.first);
        let pages = Pages::open(state, takes_over, PageTimes::default(), Arc::clone(&tokens));
        let pages = Arc::new(pages.context("cannot remove the pages of an earlier server")?);
        let mut app = app.with_tokens(tokens).with_pages(Arc::clone(&pages));
        if let Some((joined, kept_by, _)) = &kept {
            app = app.kept_by(Arc::clone(kept_by), joined.uptime());
        }
        let codex = self.codex_door(state, &engine, sandboxing);
        let lines: String =
            listeners.iter().map(|listener| format!("listening on {listener}\n")).collect();
        let router = lastbyte_server::router(app.clone()).merge(codex::route(codex.clone()));
        #[cfg(feature = "fleet")]
        let (mut joined_fleet, mut listeners) = (self.join.join(&engine, state).await?, listeners);
        #[cfg(feature = "fleet")]
        let (router, carried) = joined_fleet.route(router);
        #[cfg(feature = "fleet")]
        listeners.extend(carried);
        let server = Server::new(listeners, Hosts::new(self.host.clone()), limits)
            .counted_in(Arc::clone(&app.traffic))
            .with_pages(pages);
        let (shutdown, shut_down) = oneshot::channel();
        let (closed, is_closed) = oneshot::channel::<()>();
        // What is dropped unsent has happened as well.
        let serving = tokio::spawn(server.run(router, async { _ = shut_down.await }, async {
            _ = is_closed.await;
            sleep_until(Instant::now() + GRACE).await;
        }));
        // Clients that know the addresses do not need these lines.
        let is_first = joined.is_none_or(|joined| joined.first);
        if is_first && let Err(error) = print::result(&lines) {
            tracing::warn!("{error:#}");
        }
        log::show_times_of_messages();
        tracing::info!(pid = std::process::id(), state = %state.display(), "ready");
        match joined {
            // A keeper that is gone needs no word of it.
            Some(joined) => _ = joined.ready(),
            None => supervisor::notify(supervisor::READY),
        }
        tokio::select! {
            signal = signals.next() => tracing::info!(%signal, "shutting down"),
            () = app.shutdown_asked() => tracing::info!("shutting down at the request of a client"),
            joined = upgrade::until_agreed(kept) => {
                drop(shutdown);
                upgrade::leave(joined, serving).await
            }
        }
        match joined {
            // Without a keeper it stops as well.
            Some(joined) => _ = joined.stopping(),
            None => supervisor::notify(supervisor::STOPPING),
        }
        drop::<oneshot::Sender<()>>(shutdown);
        let cut_short = closing::close(&engine, signals.next()).await;
        drop(closed);
        // Its connections are no longer HTTP's to end.
        _ = timeout(GRACE, codex.close()).await;
        if cut_short.is_none() {
            serving.await.context("the server task failed")?;
        }
        tracing::info!("stopped");
        Ok(cut_short)
    }

    /// A socket file, our own unless one was handed over, and then the ports.
    fn listeners(&self, state: &Path, given: HandedOver) -> anyhow::Result<Vec<Listener>> {
        let socket = paths::socket_path(self.state.as_deref(), self.socket.as_deref())?;
        let mut listeners = if given.unix.is_empty() {
            vec![Listener::unix(&socket)?]
        } else {
            given.unix.into_iter().map(Listener::handed_over_unix).collect::<Result<_, _>>()?
        };
        let access = self.access(state, !self.listen.is_empty() || !given.tcp.is_empty())?;
        for address in &self.listen {
            listeners.push(Listener::tcp(*address, access.clone())?);
        }
        for port in given.tcp {
            listeners.push(Listener::handed_over_tcp(port, access.clone())?);
        }
        say_where_the_token_is(state, &access);
        Ok(listeners)
    }

    /// The listeners of our keeper. A worker that is to finish a shutdown gets none.
    fn kept_listeners(
        &self,
        state: &Path,
        given: Vec<(SocketKind, OwnedFd)>,
        first: bool,
    ) -> anyhow::Result<Vec<Listener>> {
        let access = self.access(state, given.iter().any(|(kind, _)| *kind == SocketKind::Tcp))?;
        if first {
            say_where_the_token_is(state, &access);
        }
        let listeners = given.into_iter().map(|(kind, socket)| kind.listen(socket, access.clone()));
        Ok(listeners.collect::<Result<_, _>>()?)
    }

    /// What ports require, if there are any.
    fn access(&self, state: &Path, has_port: bool) -> anyhow::Result<Access> {
        Ok(if has_port && !self.no_auth {
            let created = Arc::new(CreatedTokens::open(state)?);
            let tokens = AcceptedTokens::new(Token::read_or_create(state)?).and(created);
            Access::Token(Arc::new(tokens))
        } else {
            Access::Open
        })
    }

    fn settings(&self, state: &Path) -> anyhow::Result<Settings> {
        let workdir = self.workdir.as_ref().map(absolute).transpose();
        let workdir = workdir.context("invalid --workdir")?;
        let hook = |command: &OsString| EnvHook::new(command, state.join("env-hook"), PATIENCE);
        let hook = self.env_hook.as_ref().map(hook).transpose();
        let hook = hook.context("cannot create the directory for --env-hook")?;
        let provider = hook.map(|hook| Arc::new(hook) as Arc<dyn EnvironmentProvider>);
        Ok(self.keep.apply(self.caps.apply(Settings {
            workdir,
            provider,
            history: History::Journal,
            hidden: paths::hidden(),
            protected: paths::protected(self.config.as_deref()),
            environment: supervisor::environment_of_commands(),
            id_tag: self.id_tag()?,
            ..Settings::new(state)
        })))
    }

    #[cfg_attr(
        not(feature = "fleet"),
        expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "there is no fleet")
    )]
    fn id_tag(&self) -> anyhow::Result<Option<IdTag>> {
        #[cfg(feature = "fleet")]
        return self.join.id_tag();
        #[cfg(not(feature = "fleet"))]
        Ok(None)
    }

    /// Its clients' commands run where the server was started unless they are told where.
    fn codex_door(&self, state: &Path, engine: &Engine, sandboxing: Sandboxing) -> codex::Door {
        let cwd = self.workdir.as_ref().and_then(|workdir| absolute(workdir).ok());
        let cwd = cwd.or_else(|| std::env::current_dir().ok()).unwrap_or_else(|| "/".into());
        let settings = codex::Settings { sandboxing, ..codex::Settings::new(cwd, state) };
        codex::Door::new(engine.clone(), settings)
    }

    fn sandboxing(&self, listeners: &[Listener]) -> Sandboxing {
        let has_port = listeners.iter().any(|listener| listener.socket_file().is_none());
        Sandboxing {
            default: self.default_sandbox.sandbox(),
            ports: if self.no_auth && has_port { Ports::Open } else { Ports::Guarded },
        }
    }
}

/// For people, so not in the log: its level may leave this out.
fn say_where_the_token_is(state: &Path, access: &Access) {
    if let Access::Token(_) = access {
        print::message(format_args!("the token is in {}", Token::file_in(state).display()));
    }
}

/// What an earlier server has left, and what of it is damaged.
fn log_restored(restored: &Restored) {
    let Restored { taken_over, cut, uncertain_input, ended, lost, .. } = restored;
    let Restored { torn_bytes, unknown_records, removed_files, set_aside, .. } = restored;
    if ended + lost > 0 {
        tracing::info!(ended, lost, "restored the processes of an earlier server");
    }
    if *taken_over > 0 {
        tracing::info!(taken_over, "went on with the processes of the worker before this one");
    }
    if *cut > 0 {
        tracing::error!(cut, "the stand-in died too: the output of these processes is cut here");
    }
    for (process, (from, to)) in uncertain_input {
        tracing::warn!(%process, from, to, "killed while typing this input, which may not have arrived");
    }
    if *torn_bytes > 0 || *unknown_records > 0 {
        tracing::warn!(torn_bytes, unknown_records, "cannot read a part of the journal");
    }
    if *removed_files > 0 {
        tracing::info!(removed_files, "removed files of forgotten processes");
    }
    if let Some((folder, files)) = set_aside {
        let folder = folder.display();
        tracing::warn!(files, %folder, "set aside files that the journal does not name");
    }
}
