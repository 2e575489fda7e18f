//! Which directory a command runs in.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use lastbyte_sys::Errno;

use crate::environment::Environment;
use crate::plan::{LaunchError, Warning};

/// The launch's, which must be a directory; else the configured one, `$HOME`, the home of the
/// user, each only if it is one; else `/`, with a warning.
pub(crate) fn choose(
    asked: Option<&Path>,
    configured: Option<&Path>,
    base: &Environment,
) -> Result<(PathBuf, Option<Warning>), LaunchError> {
    if let Some(path) = asked {
        return check(path).map(|()| (path.to_owned(), None));
    }
    let home = base.get(OsStr::new("HOME")).map(PathBuf::from);
    let candidates = [configured.map(Path::to_owned), home, lastbyte_sys::user::home()];
    let found = candidates.into_iter().flatten().find(|path| path.is_absolute() && path.is_dir());
    Ok(match found {
        Some(path) => (path, None),
        None => (PathBuf::from("/"), Some(Warning::NoHome)),
    })
}

/// Says what is wrong with a directory before anything is started, by its name.
fn check(path: &Path) -> Result<(), LaunchError> {
    let fault = |errno| Err(LaunchError::Cwd { path: path.to_owned(), errno });
    match path.metadata() {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => fault(Errno::NOTDIR),
        // A NUL has no error number of its own; the plan names it.
        Err(error) => fault(Errno::from_io_error(&error).unwrap_or(Errno::INVAL)),
    }
}
