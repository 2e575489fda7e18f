//! A daemon that has closed its socket and still stops what it runs, as others see it.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use anyhow::bail;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::daemon::{address, lock};

/// Past every grace that a server gives. Only to end what hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// Nobody answers, and somebody is there.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the server (pid {pid}) is shutting down; it is still stopping what it runs")]
pub(crate) struct ShuttingDown {
    pub(crate) pid: u32,
}

impl ShuttingDown {
    /// The daemon that listened on this socket, if it is about to go.
    pub(crate) fn look(state: &Path, socket: &Path) -> Option<Self> {
        // One that has no address does not listen yet.
        let address = address::read(state)?;
        if address != socket || socket.exists() {
            return None;
        }
        Some(Self { pid: lock::holder_of(state)? })
    }

    /// Blocks until it is gone.
    pub(crate) fn until_gone(self) -> anyhow::Result<()> {
        match open(self.pid) {
            Some(server) => until_gone(&server, self.pid),
            None => Ok(()),
        }
    }
}

pub(crate) fn until_gone(server: &OwnedFd, pid: u32) -> anyhow::Result<()> {
    let mut gone = [PollFd::new(server, PollFlags::IN)];
    let patience = PATIENCE.try_into()?;
    match rustix::io::retry_on_intr(|| poll(&mut gone, Some(&patience)))? {
        0 => bail!("the server (pid {pid}) is about to go, and still there after {PATIENCE:?}"),
        _ => Ok(()),
    }
}

/// `None` when it is gone already, or when the number means somebody else here: a socket can be
/// shared with a container.
pub(crate) fn open(pid: u32) -> Option<OwnedFd> {
    let server = pidfd_open(Pid::from_raw(i32::try_from(pid).ok()?)?, PidfdFlags::empty()).ok()?;
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    (name.trim_end() == "lastbyte").then_some(server)
}
