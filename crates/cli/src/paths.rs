//! Where lastbyte keeps its state, sockets and settings: the same rule for the daemon and its
//! clients.

use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf, absolute};

use anyhow::{Context, anyhow};
use rustix::process::geteuid;

use crate::config;

/// The state directory: the one that was given, else `lastbyte` where this user's programs keep
/// their state.
pub(crate) fn state_dir(given: Option<&Path>) -> anyhow::Result<PathBuf> {
    Paths::from_env().state_dir(given)
}

/// The socket of the daemon: the one that was given, else that of the state directory that was given,
/// else `lastbyte/socket` where this user's programs keep their sockets, else that of the state
/// folder.
pub(crate) fn socket_path(state: Option<&Path>, socket: Option<&Path>) -> anyhow::Result<PathBuf> {
    Paths::from_env().socket_path(state, socket)
}

/// Where this user's programs keep their state.
pub(crate) fn state_home() -> Option<PathBuf> {
    variable("XDG_STATE_HOME").or_else(|| Some(variable("HOME")?.join(".local/state")))
}

/// Where this user's programs look for their configuration.
pub(crate) fn config_home() -> Option<PathBuf> {
    variable("XDG_CONFIG_HOME").or_else(|| Some(variable("HOME")?.join(".config")))
}

/// The folders in which a daemon of this user has its token, its output and its socket unless it
/// is told otherwise, and its settings: hidden from sandboxed commands.
pub(crate) fn hidden() -> Vec<PathBuf> {
    let settings = config_home().map(|home| home.join("lastbyte"));
    Paths::from_env().usual().into_iter().chain(settings).collect()
}

/// The file with the server's settings, if it was named: sandboxed commands must not write it. The
/// usual one is in a hidden folder.
pub(crate) fn protected(config: Option<&Path>) -> Vec<PathBuf> {
    config::named_file(config).and_then(|path| absolute(path).ok()).into_iter().collect()
}

#[derive(Debug)]
struct Paths {
    state_home: Option<PathBuf>,
    runtime: Option<PathBuf>,
}

impl Paths {
    fn from_env() -> Self {
        Self { state_home: state_home(), runtime: variable("XDG_RUNTIME_DIR") }
    }

    fn state_dir(&self, given: Option<&Path>) -> anyhow::Result<PathBuf> {
        match (given, &self.state_home) {
            (Some(given), _) => whole(given),
            (None, Some(home)) => Ok(home.join("lastbyte")),
            (None, None) => Err(anyhow!(
                "no state directory: neither HOME nor XDG_STATE_HOME is an absolute path; choose one with \
                 --state DIR or LASTBYTE_STATE"
            )),
        }
    }

    fn usual(&self) -> Vec<PathBuf> {
        let socket = self.socket_path(None, None).ok();
        let socket_folder = socket.as_deref().and_then(Path::parent).map(Path::to_owned);
        self.state_dir(None).ok().into_iter().chain(socket_folder).collect()
    }

    fn socket_path(&self, state: Option<&Path>, socket: Option<&Path>) -> anyhow::Result<PathBuf> {
        let runtime = self.runtime.as_deref().filter(|folder| is_ours(folder));
        match (socket, state, runtime) {
            (Some(socket), ..) => whole(socket),
            (None, None, Some(runtime)) => Ok(runtime.join("lastbyte/socket")),
            (None, state, _) => Ok(self.state_dir(state)?.join("socket")),
        }
    }
}

/// The specification says to ignore what is not absolute.
fn variable(name: &str) -> Option<PathBuf> {
    env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// A name that means the same wherever the daemon goes.
fn whole(path: &Path) -> anyhow::Result<PathBuf> {
    absolute(path).with_context(|| format!("invalid path {:?}", path.display()))
}

/// `su` and containers leave the variable of another user, or one of a folder that is not there.
fn is_ours(folder: &Path) -> bool {
    fs::metadata(folder).is_ok_and(|found| found.is_dir() && found.uid() == geteuid().as_raw())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(state_home: Option<&str>, runtime: Option<&Path>) -> Paths {
        Paths { state_home: state_home.map(PathBuf::from), runtime: runtime.map(PathBuf::from) }
    }

    #[test]
    fn a_given_state_folder_wins_over_the_users() {
        let both = places(Some("/home/me/.local/state"), None);
        assert_eq!(both.state_dir(None).unwrap(), Path::new("/home/me/.local/state/lastbyte"));
        assert_eq!(both.state_dir(Some(Path::new("/a"))).unwrap(), Path::new("/a"));
        let here = env::current_dir().unwrap();
        assert_eq!(both.state_dir(Some(Path::new("a"))).unwrap(), here.join("a"));
    }

    #[test]
    fn without_any_place_the_way_out_is_named() {
        let error = places(None, None).state_dir(None).unwrap_err().to_string();
        assert!(error.contains("--state DIR"), "{error}");
    }

    #[test]
    fn the_socket_is_where_sockets_are_kept() {
        let runtime = tempfile::tempdir().unwrap();
        let both = places(Some("/home"), Some(runtime.path()));
        let (state, socket) = (Some(Path::new("/state")), Some(Path::new("/x.sock")));
        let usual = runtime.path().join("lastbyte/socket");
        assert_eq!(both.socket_path(None, None).unwrap(), usual);
        assert_eq!(both.socket_path(state, socket).unwrap(), Path::new("/x.sock"));
        // Two daemons with state directories of their own are not in each other's way.
        assert_eq!(both.socket_path(state, None).unwrap(), Path::new("/state/socket"));
    }

    #[test]
    fn the_usual_places_are_folders_of_our_own() {
        let runtime = tempfile::tempdir().unwrap();
        let both = places(Some("/home"), Some(runtime.path()));
        let want = [PathBuf::from("/home/lastbyte"), runtime.path().join("lastbyte")];
        assert_eq!(both.usual(), want);
        assert_eq!(places(None, None).usual(), Vec::<PathBuf>::new());
    }

    #[test]
    fn a_runtime_folder_that_is_not_there_is_not_used() {
        let gone = places(Some("/home"), Some(Path::new("/nowhere/at/all")));
        let want = Path::new("/home/lastbyte/socket");
        assert_eq!(gone.socket_path(None, None).unwrap(), want);
        assert_eq!(places(Some("/home"), None).socket_path(None, None).unwrap(), want);
    }
}
