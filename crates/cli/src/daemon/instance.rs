//! The one daemon of a state directory, as itself and others find it: its lock, the file with its
//! socket (whose usual path depends on the variables of the process that looks), and its end.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use lastbyte_sys::readiness::{Interest, watch};
use rustix::fs::{FlockOperation, fcntl_lock, flock, ftruncate};
use rustix::io::Errno;
use rustix::process::{Flock, FlockType, Pid, PidfdFlags, fcntl_getlk, geteuid, pidfd_open};
use tokio::time::timeout;

use crate::client_error::state_flag;
use crate::state_folder::open_lock_of_server;

/// Held for as long as the daemon lives; the kernel lets it go, however it ends.
#[derive(Debug)]
pub(crate) struct StateLock {
    file: File,
}

impl StateLock {
    /// Makes the folder, for this user alone, if it is missing.
    pub(crate) fn take(state: &Path) -> anyhow::Result<Self> {
        let file = open_lock_of_server(state, "lock")?;
        // The second lock can be asked about without being taken, which would be in the way of a
        // daemon that starts.
        let exclusive = FlockOperation::NonBlockingLockExclusive;
        match flock(&file, exclusive).and_then(|()| fcntl_lock(&file, exclusive)) {
            Err(Errno::WOULDBLOCK) => bail!(
                "a server ({pid}) already uses state directory {state}; stop it with `lastbyte \
                 shutdown{flag}`, or choose another directory with --state DIR",
                pid = holder(&file),
                state = state.display(),
                flag = state_flag(state)
            ),
            locked => locked.map_err(io::Error::from).and_then(|()| sign(&file)),
        }
        .with_context(|| format!("cannot use state directory {}", state.display()))?;
        Ok(Self { file })
    }

    /// For another process, which then holds it as well.
    pub(crate) fn share(&self) -> anyhow::Result<OwnedFd> {
        Ok(self.file.try_clone().context("cannot share the lock of the state directory")?.into())
    }

    /// One that is shared with a process that is gone: others see that it is ours.
    pub(crate) fn adopt(file: OwnedFd) -> io::Result<Self> {
        let file = File::from(file);
        fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive)?;
        sign(&file)?;
        Ok(Self { file })
    }
}

/// The pid of the daemon that works there.
fn holder_of(state: &Path) -> Option<u32> {
    let file = File::open(state.join("lock")).ok()?;
    let held = fcntl_getlk(&file, &Flock::from(FlockType::WriteLock)).ok()??;
    u32::try_from(held.pid?.as_raw_nonzero().get()).ok()
}

fn sign(mut file: &File) -> io::Result<()> {
    ftruncate(file, 0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

/// The pid in the lock file, which may not be written yet.
fn holder(mut file: &File) -> String {
    let mut text = String::new();
    match file.read_to_string(&mut text) {
        Ok(_) if !text.trim().is_empty() => format!("pid {}", text.trim()),
        Ok(_) | Err(_) => "pid unknown".into(),
    }
}

/// The file with the socket's path; removed when dropped. Only the holder of the lock writes it.
#[derive(Debug)]
pub(crate) struct AddressFile {
    path: PathBuf,
}

impl AddressFile {
    pub(crate) fn write(state: &Path, socket: &Path) -> io::Result<Self> {
        let path = address_file(state);
        // Written completely before it gets its name, so that no reader sees half of it.
        let unnamed = state.join("address.new");
        remove(&unnamed)?;
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&unnamed)?;
        file.write_all(socket.as_os_str().as_bytes())?;
        fs::rename(&unnamed, &path)?;
        Ok(Self { path })
    }
}

impl Drop for AddressFile {
    fn drop(&mut self) {
        // A file left behind names a socket without a listener.
        _ = fs::remove_file(&self.path);
    }
}

/// Removes the address of a daemon that crashed.
pub(crate) fn forget_address(state: &Path) -> io::Result<()> {
    remove(&address_file(state))
}

/// The socket of the daemon that uses or used this state directory, if the file is from this user.
pub(crate) fn read_address(state: &Path) -> Option<PathBuf> {
    let mut file = File::open(address_file(state)).ok()?;
    let found = file.metadata().ok()?;
    let ours = found.is_file() && found.uid() == geteuid().as_raw() && found.mode() & 0o022 == 0;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).ok().filter(|_| ours)?;
    Some(PathBuf::from(OsStr::from_bytes(&bytes))).filter(|path| path.is_absolute())
}

fn address_file(state: &Path) -> PathBuf {
    state.join("address")
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Past every grace that a server gives. Only to end what hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// The server no longer listens but still runs.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the server (pid {pid}) is shutting down and still stopping its processes")]
pub(crate) struct ShuttingDown {
    pub(crate) pid: u32,
}

impl ShuttingDown {
    /// The daemon with this state directory and socket, if it is about to go.
    pub(crate) fn look(state: &Path, socket: &Path) -> Option<Self> {
        if socket.exists() { None } else { holder_of(state).map(|pid| Self { pid }) }
    }

    /// Waits until it is gone. Fails if that takes longer than [`PATIENCE`].
    pub(crate) async fn until_gone(self) -> anyhow::Result<()> {
        match open_pidfd(self.pid) {
            Some(server) => until_gone(server, self.pid).await,
            None => Ok(()),
        }
    }
}

/// Must be called on a runtime.
pub(crate) async fn until_gone(server: OwnedFd, pid: u32) -> anyhow::Result<()> {
    let server = watch(server, Interest::READABLE)?;
    match timeout(PATIENCE, server.readable()).await {
        Err(_) => {
            bail!("the server (pid {pid}) is shutting down but still running after {PATIENCE:?}")
        }
        Ok(gone) => {
            _ = gone?;
            Ok(())
        }
    }
}

/// `None` if it is gone already, or if the pid is another process here: a socket can be shared
/// with a container.
pub(crate) fn open_pidfd(pid: u32) -> Option<OwnedFd> {
    let server = pidfd_open(Pid::from_raw(i32::try_from(pid).ok()?)?, PidfdFlags::empty()).ok()?;
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    (name.trim_end() == "lastbyte").then_some(server)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_second_daemon_is_told_of_the_first() {
        let temp = tempfile::tempdir().unwrap();
        let state = temp.path().join("state");
        let first = StateLock::take(&state).unwrap();
        let error = StateLock::take(&state).unwrap_err();
        let text = error.to_string();
        let pid = format!("pid {}", std::process::id());
        assert!(text.contains(&pid) && text.contains(state.to_str().unwrap()), "{text}");
        drop(first);
        StateLock::take(&state).unwrap();
    }

    #[test]
    fn a_longer_pid_of_an_earlier_daemon_leaves_nothing() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::write(temp.path().join("lock"), "99999999999999999999\n").unwrap();
        let _lock = StateLock::take(temp.path()).unwrap();
        let text = std::fs::read_to_string(temp.path().join("lock")).unwrap();
        assert_eq!(text, format!("{}\n", std::process::id()));
    }

    #[test]
    fn an_address_is_there_for_as_long_as_its_daemon() {
        let state = tempfile::tempdir().unwrap();
        let file = AddressFile::write(state.path(), Path::new("/run/socket")).unwrap();
        assert_eq!(read_address(state.path()), Some("/run/socket".into()));
        assert_eq!(fs::metadata(state.path().join("address")).unwrap().mode() & 0o777, 0o600);
        drop(file);
        assert_eq!(read_address(state.path()), None);
    }

    #[test]
    fn an_address_that_others_can_change_is_not_taken() {
        let state = tempfile::tempdir().unwrap();
        let _file = AddressFile::write(state.path(), Path::new("/run/socket")).unwrap();
        let open = fs::Permissions::from_mode(0o666);
        fs::set_permissions(state.path().join("address"), open).unwrap();
        assert_eq!(read_address(state.path()), None);
    }
}
