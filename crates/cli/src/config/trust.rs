//! Checks who can change the config file. It names commands to run (`env-hook`) and servers to
//! trust (`server`), so only this user and root may.
//!
//! The rule is that of ssh for its own files: it is about the file and about every folder on the way
//! to it, as far as this user's home, in which another could be put in its place. A link has two ways:
//! its own, and where it leads.

use std::env;
use std::fs::{self, File, Metadata};
use std::io;
use std::iter;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;
use rustix::process::geteuid;

use super::ConfigError;

/// Looks at the file that was opened, not at what its path leads to by now.
pub(super) fn check(path: &Path, file: &File) -> Result<(), ConfigError> {
    let failed = |source| ConfigError::Read { path: path.into(), source };
    let of_file = file.metadata().map_err(failed)?;
    if !is_read_at_once(of_file.mode()) {
        return Err(ConfigError::NoFile { path: path.into() });
    }
    let home = env::var_os("HOME").and_then(|home| fs::metadata(home).ok());
    let folders = folders(path, home.as_ref()).map_err(failed)?;
    let places: Vec<_> = iter::once((path.to_owned(), of_file)).chain(folders).collect();
    let own = geteuid().as_raw();
    if let Some((place, found)) = places.iter().find(|(_, found)| is_foreign(found.uid(), own)) {
        let (path, place) = (path.into(), place.into());
        return Err(ConfigError::Foreign { path, place, uid: found.uid() });
    }
    let open = places.into_iter().filter(|(_, found)| is_open(found.mode()));
    let open: Vec<_> = open.map(|(place, _)| place).collect();
    if open.is_empty() { Ok(()) } else { Err(ConfigError::Open { path: path.into(), open }) }
}

/// The folders above it, as its path is written and as it is without links; each once. Directories
/// above this user's home are not checked: their owner controls everything anyway, and in a
/// container they often belong to an unknown user.
fn folders(path: &Path, home: Option<&Metadata>) -> io::Result<Vec<(PathBuf, Metadata)>> {
    let real = fs::canonicalize(path)?;
    let mut folders: Vec<(PathBuf, Metadata)> = Vec::new();
    for way in [path, &real] {
        for folder in way.ancestors().skip(1) {
            let found = fs::metadata(folder)?;
            let is_home = home.is_some_and(|home| is_same(home, &found));
            let is_known = |(_, known): &(PathBuf, Metadata)| is_same(known, &found);
            if !folders.iter().any(is_known) {
                folders.push((folder.to_owned(), found));
            }
            if is_home {
                break;
            }
        }
    }
    Ok(folders)
}

fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// A file or a device. A pipe may wait for its writer for ever, and is empty to the server that is
/// started with the same settings.
fn is_read_at_once(mode: u32) -> bool {
    matches!(FileType::from_raw_mode(mode), FileType::RegularFile | FileType::CharacterDevice)
}

fn is_foreign(uid: u32, own: u32) -> bool {
    uid != own && uid != 0
}

/// Whether others can change its content.
fn is_open(mode: u32) -> bool {
    let by_others = mode & 0o022 != 0;
    match FileType::from_raw_mode(mode) {
        // What is written to /dev/null is not read from it.
        FileType::CharacterDevice => false,
        // With the sticky bit, as /tmp has it, they can only add to it.
        FileType::Directory => by_others && mode & 0o1000 == 0,
        _ => by_others,
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn only_this_user_and_root_are_no_strangers() {
        for (uid, own, want) in
            [(5, 5, false), (0, 5, false), (0, 0, false), (6, 5, true), (5, 0, true)]
        {
            assert_eq!(is_foreign(uid, own), want, "{uid} to {own}");
        }
    }

    #[test]
    fn a_file_and_its_folder_are_closed_to_others() {
        for (mode, want) in [
            (0o100_600, false),
            (0o100_644, false),
            (0o100_664, true),
            (0o100_602, true),
            (0o040_755, false),
            (0o040_775, true),
            (0o040_777, true),
            (0o041_777, false),
            (0o020_666, false),
        ] {
            assert_eq!(is_open(mode), want, "{mode:o}");
        }
    }

    #[test]
    fn the_way_ends_at_home() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("above/home");
        fs::create_dir_all(home.join("in")).unwrap();
        let file = home.join("in/config.toml");
        fs::write(&file, "").unwrap();
        let names = |home: Option<&Metadata>| -> Vec<PathBuf> {
            folders(&file, home).unwrap().into_iter().map(|(name, _)| name).collect()
        };
        let looked_at = names(fs::metadata(&home).ok().as_ref());
        assert_eq!(looked_at, [home.join("in"), home]);
        assert_eq!(names(None).last().unwrap(), Path::new("/"));
    }

    #[test]
    fn the_file_that_was_opened_counts() {
        let folder = tempfile::tempdir().unwrap();
        // Whatever umask the tests are run with.
        fs::set_permissions(&folder, Permissions::from_mode(0o700)).unwrap();
        let (path, other) = (folder.path().join("config.toml"), folder.path().join("other"));
        fs::write(&path, "").unwrap();
        fs::write(&other, "").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
        fs::set_permissions(&other, Permissions::from_mode(0o600)).unwrap();
        let opened = File::open(&path).unwrap();
        fs::rename(&other, &path).unwrap();
        assert!(check(&path, &opened).is_err(), "the one that was open to others was opened");
        check(&path, &File::open(&path).unwrap()).unwrap();
    }
}
