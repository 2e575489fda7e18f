//! One daemon for a state folder.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, fcntl_lock, flock, ftruncate};
use rustix::io::Errno;
use rustix::process::{Flock, FlockType, fcntl_getlk};

use crate::state_folder::{make_ours, open_lock};

/// Held for as long as the daemon lives; the kernel lets it go, however it ends.
#[derive(Debug)]
pub(crate) struct StateLock {
    _file: File,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum LockError {
    #[error("cannot use the state folder {state}", state = state.display())]
    Unusable { state: PathBuf, source: io::Error },
    #[error(
        "a server already runs on {state}, {pid}: `lastbyte shutdown` ends it, or give this one \
         another folder with --state DIR", state = state.display()
    )]
    Taken { state: PathBuf, pid: String },
}

impl StateLock {
    /// Makes the folder, for this user alone, if it is missing.
    pub(crate) fn take(state: &Path) -> Result<Self, LockError> {
        let failed = |source| LockError::Unusable { state: state.into(), source };
        let file = make_ours(state).and_then(|()| open_lock(state)).map_err(failed)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                return Err(LockError::Taken { state: state.into(), pid: holder(&file) });
            }
            Err(errno) => return Err(failed(errno.into())),
        }
        // Can be asked about without being taken, which would be in the way of a daemon that starts.
        fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(|errno| failed(errno.into()))?;
        sign(&file).map_err(failed)?;
        Ok(Self { _file: file })
    }
}

/// The pid of the daemon that works there.
pub(crate) fn holder_of(state: &Path) -> Option<u32> {
    let file = File::open(state.join("lock")).ok()?;
    let held = fcntl_getlk(&file, &Flock::from(FlockType::WriteLock)).ok()??;
    u32::try_from(held.pid?.as_raw_nonzero().get()).ok()
}

fn sign(mut file: &File) -> io::Result<()> {
    ftruncate(file, 0)?;
    writeln!(file, "{}", std::process::id())
}

/// Who says that it has the lock; it may be about to say so.
fn holder(mut file: &File) -> String {
    let mut text = String::new();
    match file.read_to_string(&mut text) {
        Ok(_) if !text.trim().is_empty() => format!("pid {}", text.trim()),
        Ok(_) | Err(_) => "whose pid is not known".into(),
    }
}

#[cfg(test)]
mod tests {
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
}
