//! Chooses the directory a command runs in.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use lastbyte_sys::Errno;

use crate::launch::environment::Environment;
use crate::launch::plan::{LaunchError, Warning};

/// The launch's directory, which must exist. Otherwise the configured one, `$HOME`, or the user's
/// home, skipping any that is not a directory. Otherwise `/`, with a warning.
pub(crate) fn choose(
    asked: Option<&Path>,
    configured: Option<&Path>,
    base: &Environment,
) -> Result<(PathBuf, Option<Warning>), LaunchError> {
    if let Some(path) = asked {
        return check(path).map(|()| (path.to_owned(), None));
    }
    let usable = |path: &PathBuf| path.is_absolute() && path.is_dir();
    let home = || base.get(OsStr::new("HOME")).map(PathBuf::from).filter(usable);
    let found = configured.map(Path::to_owned).filter(usable);
    // Asked last, because the user database may be on the network.
    let found = found.or_else(home).or_else(|| lastbyte_sys::user::home().filter(usable));
    Ok(match found {
        Some(path) => (path, None),
        None => (PathBuf::from("/"), Some(Warning::NoHome)),
    })
}

/// Reports a problem with a directory by name before anything is started.
fn check(path: &Path) -> Result<(), LaunchError> {
    let fault = |errno| Err(LaunchError::Cwd { path: path.to_owned(), errno });
    match path.metadata() {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => fault(Errno::NOTDIR),
        // A NUL has no error number; the plan reports it.
        Err(error) => fault(Errno::from_io_error(&error).unwrap_or(Errno::INVAL)),
    }
}
