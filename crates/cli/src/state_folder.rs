//! The private folder of one run: locked while the run lives, removed at its end, and removed by
//! the next run if it was left behind.
//!
//! ```text
//! <state>/lastbyte/runs/lock        held for the moment in which a folder is made or looked for
//!                      /<pid>-<time>/lock      held for as long as the run lives
//! ```
//!
//! Folders are made and locked under the outer lock, and leftovers are claimed under it: a folder
//! whose own lock is free has no owner, not even one that is about to lock it.

use std::env;
use std::fmt::Display;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use lastbyte_engine::Settings;
use rustix::fs::{FlockOperation, flock};
use rustix::process::geteuid;

use crate::{paths, timestamp, usage};

/// A folder with a lock that we hold; removed when dropped.
#[derive(Debug)]
pub(crate) struct StateFolder {
    path: PathBuf,
    _lock: File,
}

impl StateFolder {
    /// Makes a folder where this user keeps state, else in the temporary directory, and removes
    /// what earlier runs have left there.
    pub(crate) fn create() -> anyhow::Result<Self> {
        Self::create_in(paths::state_home().as_deref(), &env::temp_dir())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// For an engine that works here. The list of what sandboxed commands could write is shared by all
    /// runs and by the daemon of the usual state directory.
    pub(crate) fn settings(&self) -> Settings {
        let base = self.path.parent().and_then(Path::parent);
        Settings {
            hidden: paths::hidden(),
            protected: paths::protected(None),
            sandbox_roots: base.unwrap_or(&self.path).join("sandbox-roots"),
            ..Settings::new(&self.path)
        }
    }

    fn create_in(state_home: Option<&Path>, temp: &Path) -> anyhow::Result<Self> {
        let shared = temp.join(format!("lastbyte-{}", geteuid().as_raw()));
        let shared = (shared, require_private as fn(&Path) -> io::Result<()>);
        let own = state_home.map(|home| (home.join("lastbyte"), make_private as _));
        let mut refusals = Vec::new();
        for (base, make) in own.into_iter().chain([shared]) {
            match make(&base).and_then(|()| Self::create_under(&base.join("runs"))) {
                Ok(folder) => return Ok(folder),
                Err(error) => refusals.push(format!("{}: {error}", base.display())),
            }
        }
        bail!("cannot create a directory for the output: {}", refusals.join("; "))
    }

    fn create_under(runs: &Path) -> io::Result<Self> {
        make_private(runs)?;
        let outer = open_lock(&runs.join("lock"))?;
        rustix::io::retry_on_intr(|| flock(&outer, FlockOperation::LockExclusive))?;
        let leftovers = claim_leftovers(runs);
        let path = runs.join(format!("{}-{}", std::process::id(), timestamp::now()));
        let made = DirBuilder::new().mode(0o700).create(&path);
        let folder = made.and_then(|()| Self::claim(path));
        // Others need not wait while leftovers are removed.
        drop(outer);
        drop(leftovers);
        folder
    }

    /// Takes a folder that nobody holds.
    fn claim(path: PathBuf) -> io::Result<Self> {
        let lock = open_lock(&path.join("lock"))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self { path, _lock: lock })
    }
}

impl Drop for StateFolder {
    fn drop(&mut self) {
        // What cannot be removed is a leftover for the next run.
        _ = fs::remove_dir_all(&self.path);
    }
}

/// The folders whose runs are gone. What cannot be looked at is not ours to remove.
fn claim_leftovers(runs: &Path) -> Vec<StateFolder> {
    let entries = fs::read_dir(runs).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.filter_map(|entry| StateFolder::claim(entry.path()).ok()).collect()
}

fn open_lock(path: &Path) -> io::Result<File> {
    File::options().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

fn make_private(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Opens a file for locks in the state directory of a server, which is made if it is missing.
pub(crate) fn open_lock_of_server(state: &Path, name: &str) -> anyhow::Result<File> {
    create_owned(state)
        .and_then(|()| open_lock(&state.join(name)).map_err(unusable))
        .with_context(|| format!("cannot use state directory {}", state.display()))
}

/// Makes the folder if it is missing. One in which others can put a socket or a token of theirs in
/// the place of ours will not do.
fn create_owned(folder: &Path) -> io::Result<()> {
    make_private(folder).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => unusable("it is not a directory"),
        _ => unusable(error),
    })?;
    let found = fs::metadata(folder)?;
    if found.uid() != geteuid().as_raw() {
        return Err(unusable("it belongs to another user"));
    }
    if found.mode() & 0o022 != 0 {
        let fix = usage::quoted(&folder.to_string_lossy());
        return Err(io::Error::other(format!(
            "other users can write to it; run `chmod go-w {fix}`, or {OTHER_STATE}"
        )));
    }
    Ok(())
}

/// With what to do about a state directory.
fn unusable(why: impl Display) -> io::Error {
    io::Error::other(format!("{why}; {OTHER_STATE}"))
}

const OTHER_STATE: &str = "choose another with --state DIR or LASTBYTE_STATE";

/// Anybody can make a folder in a shared directory: only one that is ours alone will do.
fn require_private(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let found = fs::symlink_metadata(folder)?;
    let ours = found.is_dir() && found.uid() == geteuid().as_raw() && found.mode() & 0o077 == 0;
    if ours { Ok(()) } else { Err(io::Error::other("not a private directory of this user")) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn folders(runs: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(runs).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.is_dir()).collect()
    }

    #[test]
    fn a_folder_is_private_and_goes_with_its_owner() {
        let home = tempfile::tempdir().unwrap();
        let folder = StateFolder::create_in(Some(home.path()), Path::new("/nowhere")).unwrap();
        let runs = home.path().join("lastbyte/runs");
        assert_eq!(folders(&runs), [folder.path()]);
        assert_eq!((mode(&runs), mode(folder.path())), (0o700, 0o700));
        fs::create_dir(folder.path().join("logs")).unwrap();
        drop(folder);
        assert_eq!(folders(&runs), Vec::<PathBuf>::new());
    }

    #[test]
    fn a_leftover_is_swept_and_a_living_one_is_not() {
        let home = tempfile::tempdir().unwrap();
        let create = || StateFolder::create_in(Some(home.path()), Path::new("/nowhere")).unwrap();
        let living = create();
        let runs = home.path().join("lastbyte/runs");
        let (locked_once, never_locked) = (runs.join("1-1"), runs.join("2-2"));
        fs::create_dir_all(locked_once.join("logs")).unwrap();
        fs::write(locked_once.join("lock"), "").unwrap();
        fs::create_dir(&never_locked).unwrap();
        let new = create();
        let mut want = [living.path(), new.path()];
        want.sort();
        let mut left = folders(&runs);
        left.sort();
        assert_eq!(left, want);
    }

    #[test]
    fn runs_that_start_and_end_at_once_never_sweep_each_other() {
        let home = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        let folder =
                            StateFolder::create_in(Some(home.path()), Path::new("/nowhere"));
                        let folder = folder.unwrap();
                        fs::write(folder.path().join("log"), "output").unwrap();
                        std::thread::yield_now();
                        assert_eq!(fs::read(folder.path().join("log")).unwrap(), b"output");
                    }
                });
            }
        });
        assert_eq!(folders(&home.path().join("lastbyte/runs")), Vec::<PathBuf>::new());
    }

    #[test]
    fn without_a_home_the_folder_is_in_the_temporary_directory() {
        let temp = tempfile::tempdir().unwrap();
        for home in [None, Some(Path::new("/dev/null"))] {
            let folder = StateFolder::create_in(home, temp.path()).unwrap();
            let base = temp.path().join(format!("lastbyte-{}", geteuid().as_raw()));
            assert!(folder.path().starts_with(base.join("runs")));
            assert_eq!(mode(&base), 0o700);
        }
    }

    #[test]
    fn a_temporary_folder_that_others_can_reach_is_refused() {
        let name = format!("lastbyte-{}", geteuid().as_raw());
        let (open, linked) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir(open.path().join(&name)).unwrap();
        fs::set_permissions(open.path().join(&name), PermissionsExt::from_mode(0o755)).unwrap();
        let target = linked.path().join("private, but somebody's");
        make_private(&target).unwrap();
        symlink(target, linked.path().join(&name)).unwrap();
        for temp in [open, linked] {
            let error = StateFolder::create_in(None, temp.path()).unwrap_err().to_string();
            let want = format!(
                "cannot create a directory for the output: {}: not a private directory of this user",
                temp.path().join(&name).display()
            );
            assert_eq!(error, want);
        }
    }
}
