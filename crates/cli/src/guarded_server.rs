//! A server of its own for one protocol: under a guard, until a signal, a client's end or the guard's.

use std::env;
use std::future::pending;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::pin::pin;
use std::thread;

use anyhow::Context;
use lastbyte_engine::{Engine, OrphanReaper, Signal, Survivors};
use lastbyte_keeper::{Guarded, guard};
use lastbyte_sys::Status;
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use crate::commands::with_signals;
use crate::daemon::keep::own_program;
use crate::exit_code::help::{self, Code};
use crate::signals::Signals;
use crate::state_folder::StateFolder;
use crate::{exit_code, stdio};

/// Whether a process watches over the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Guard {
    /// Its parent does, and kills what the server leaves behind.
    Parent,
    Nobody,
}

/// Ready when the guard is dead, if there is one.
#[derive(Debug)]
pub(crate) struct GuardGone(Option<oneshot::Receiver<()>>);

/// The state of a server.
#[derive(Debug)]
pub(crate) struct ServerState {
    pub(crate) folder: StateFolder,
    pub(crate) engine: Engine,
    /// Where it was started.
    pub(crate) cwd: PathBuf,
    _reaper: OrphanReaper,
}

/// For the help of such a server.
pub(crate) fn exit_codes() -> String {
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

/// Runs a server, or the guard that starts it; returns the exit code.
pub(crate) fn run(
    by: Guard,
    server: impl AsyncFnOnce(&mut Signals, GuardGone) -> anyhow::Result<u8>,
) -> anyhow::Result<u8> {
    let guarded = Guarded::take().context("cannot reach the guard")?;
    if guarded.is_none() && by == Guard::Parent {
        let status = guard(&own_program()).context("cannot start the server")?;
        return Ok(match status {
            Status::Exited(code) => u8::try_from(code).unwrap_or(exit_code::OWN_FAILURE),
            Status::Signalled { signal, .. } => exit_code::from_signal(signal),
        });
    }
    let gone = GuardGone(guarded.map(when_gone).transpose()?);
    lastbyte_sys::own_signals::prepare_for_children();
    // Each command takes some.
    lastbyte_sys::descriptor_limit::raise();
    with_signals(Builder::new_multi_thread(), async |signals| server(signals, gone).await)
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

impl GuardGone {
    async fn wait(self) {
        match self.0 {
            Some(gone) => _ = gone.await,
            None => pending().await,
        }
    }
}

impl ServerState {
    pub(crate) fn create() -> anyhow::Result<Self> {
        let folder = StateFolder::create()?;
        let engine = Engine::new(folder.settings()).context("cannot prepare to run commands")?;
        // Adopts orphans, so that nothing a command starts leaves its tree or stays a zombie.
        let reaper = OrphanReaper::start().context("cannot adopt orphans")?;
        // A directory that was removed has no name any more, but is still the current one.
        let cwd = env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
        Ok(Self { folder, engine, cwd, _reaper: reaper })
    }

    /// Serves until the last client goes, or a signal or the guard's death closes the door; then stops
    /// everything that runs. Returns the exit code.
    pub(crate) async fn serve(
        self,
        served: impl Future<Output = anyhow::Result<()>>,
        close: impl Future<Output = ()>,
        signals: &mut Signals,
        gone: GuardGone,
    ) -> anyhow::Result<u8> {
        let code = until_signalled(served, close, signals, gone).await;
        self.engine.close(Survivors::Stop).await;
        code
    }
}

async fn until_signalled(
    served: impl Future<Output = anyhow::Result<()>>,
    close: impl Future<Output = ()>,
    signals: &mut Signals,
    gone: GuardGone,
) -> anyhow::Result<u8> {
    let mut served = pin!(served);
    let signal = tokio::select! {
        served = &mut served => return served.map(|()| 0),
        signal = signals.next() => signal,
        // The guard was killed, and with it the server that others know.
        () = gone.wait() => Signal::TERM,
    };
    tokio::select! {
        (served, ()) = async { tokio::join!(served, close) } => served?,
        // A second signal means not to wait for clients.
        _ = signals.next() => {}
    }
    Ok(exit_code::from_signal(signal))
}

/// The program's standard input, for a thread that may block.
#[derive(Debug)]
pub(crate) struct StandardInput;

/// Its standard output.
#[derive(Debug)]
pub(crate) struct StandardOutput;

impl AsFd for StandardOutput {
    fn as_fd(&self) -> BorrowedFd<'_> {
        rustix::stdio::stdout()
    }
}

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
