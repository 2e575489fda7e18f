//! The keeper: the process that `lastbyte serve` stays, and that starts the worker, which serves.
//!
//! It has the lock, the listeners and their files, so that these live as long as it does.

use std::env;
use std::ffi::OsString;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use anyhow::Context;
use lastbyte_keeper::{Death, End, Keeper, Notice, Setup};
use lastbyte_server::listen::{Access, BindError, Listener, SocketFile, bind_tcp};
use lastbyte_sys::Status;
use lastbyte_sys::worker::Program;

use super::instance::{self, AddressFile, StateLock};
use super::log;
use super::supervisor::{self, HandedOver};
use crate::{exit_code, print};

/// What a listener is, to the worker that gets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum SocketKind {
    /// A unix socket of our own.
    Unix,
    /// A unix socket whose file is another's.
    InheritedUnix,
    Tcp,
}

impl SocketKind {
    pub(crate) fn from_number(number: u8) -> Option<Self> {
        [Self::Unix, Self::InheritedUnix, Self::Tcp].into_iter().find(|kind| *kind as u8 == number)
    }

    /// Must be called on a runtime.
    pub(crate) fn listen(self, socket: OwnedFd, access: Access) -> Result<Listener, BindError> {
        match self {
            Self::Unix => Listener::kept_unix(UnixListener::from(socket)),
            Self::InheritedUnix => Listener::handed_over_unix(UnixListener::from(socket)),
            Self::Tcp => Listener::handed_over_tcp(TcpListener::from(socket), access),
        }
    }
}

/// Listening sockets that no runtime knows yet.
#[derive(Debug)]
pub(crate) struct Bound {
    listeners: Vec<(u8, OwnedFd)>,
    /// Where clients connect.
    socket: PathBuf,
    file: Option<SocketFile>,
}

impl Bound {
    /// A socket file, our own unless one was handed over, and then the ports.
    pub(crate) fn new(
        socket: &Path,
        ports: &[std::net::SocketAddr],
        given: HandedOver,
    ) -> anyhow::Result<Self> {
        let mut bound = Self { listeners: Vec::new(), socket: socket.into(), file: None };
        if let Some(first) = given.unix.first() {
            let address = first.local_addr().context("cannot listen on an inherited socket")?;
            let path = address.as_pathname().context("an inherited socket has no path")?;
            path.clone_into(&mut bound.socket);
        } else {
            let (listener, file) = SocketFile::bind(socket)?;
            bound.file = Some(file);
            bound.add(SocketKind::Unix, listener);
        }
        given.unix.into_iter().for_each(|socket| bound.add(SocketKind::InheritedUnix, socket));
        for address in ports {
            bound.add(SocketKind::Tcp, bind_tcp(*address)?);
        }
        given.tcp.into_iter().for_each(|port| bound.add(SocketKind::Tcp, port));
        Ok(bound)
    }

    fn add(&mut self, kind: SocketKind, listener: impl Into<OwnedFd>) {
        self.listeners.push((kind as u8, listener.into()));
    }
}

/// Serves until the worker leaves; returns the exit code. `bind` is called once this server has the
/// state directory.
pub(crate) fn keep(
    state: &Path,
    bind: impl FnOnce() -> anyhow::Result<Bound>,
) -> anyhow::Result<u8> {
    // Signals wait from here on: a deadly one would leave files behind.
    let keeper = Keeper::new().context("cannot prepare to keep what runs")?;
    let lock = StateLock::take(state)?;
    instance::forget_address(state)
        .context("cannot remove the address file of an earlier server")?;
    let Bound { listeners, socket, mut file } = bind()?;
    let _address = AddressFile::write(state, &socket)
        .context("cannot write the address file in the state directory")?;
    log::show_times_of_messages();
    let setup = Setup { program: own_program(), listeners, lock: lock.share()? };
    let end = keeper.keep(setup, |notice| {
        if notice == Notice::Stopping {
            // Clients see by this that the server no longer listens.
            file = None;
        }
        tell(notice);
    });
    match end.context("cannot start a worker")? {
        // The kernel keeps eight bits.
        End::Left(Status::Exited(code)) => Ok(code as u8),
        End::Left(Status::Signalled { signal, .. }) => Ok(exit_code::from_signal(signal)),
        End::GaveUp => {
            print::message(format_args!("cannot stop in order: no worker could be started"));
            Ok(exit_code::OWN_FAILURE)
        }
    }
}

/// This program, called as it was called.
pub(crate) fn own_program() -> Program {
    let env: Vec<(OsString, OsString)> = env::vars_os().collect();
    Program { path: "/proc/self/exe".into(), argv: env::args_os().collect(), env }
}

fn tell(notice: Notice) {
    match notice {
        Notice::Ready { first: true } => supervisor::notify(supervisor::READY),
        Notice::Ready { first: false } => print::message(format_args!("the new worker is ready")),
        Notice::Stopping => supervisor::notify(supervisor::STOPPING),
        Notice::Died(death) => print::message(format_args!("the worker {}", describe(death))),
        Notice::NotStarted { errno, pause } => print::message(format_args!(
            "cannot start a worker: {errno}; trying again in {pause:?}"
        )),
        Notice::Pause { deaths, pause } => print::message(format_args!(
            "{deaths} workers died one after the other; starting the next in {pause:?}"
        )),
    }
}

/// How a worker died, as the end of a sentence about it.
pub(crate) fn describe(death: Death) -> String {
    let how = match death.status {
        _ if death.hung => "did not respond for 30 s and was killed".into(),
        Status::Exited(code) => format!("exited with code {code}"),
        Status::Signalled { signal, .. } => format!("was killed by {signal}"),
    };
    if death.undone { format!("{how} before it was ready, so the upgrade was undone") } else { how }
}
