//! Chooses the directory a command runs in.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use lastbyte_sys::resolve::check_folder;

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
        let path = path.to_owned();
        return match check_folder(&path) {
            Ok(()) => Ok((path, None)),
            Err(errno) => Err(LaunchError::Cwd { path, errno }),
        };
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
