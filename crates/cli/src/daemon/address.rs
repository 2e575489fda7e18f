//! Where the daemon of a state folder listens, for those who would look elsewhere: the socket's
//! usual place depends on the variables of whoever looks.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

/// The file that says so; removed when dropped. Only whoever has the state's lock may have it.
#[derive(Debug)]
pub(crate) struct AddressFile {
    path: PathBuf,
}

impl AddressFile {
    pub(crate) fn write(state: &Path, socket: &Path) -> io::Result<Self> {
        let path = file_in(state);
        // Nobody reads half of it: it is whole before it has its name.
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
        // What is left names a socket that nobody listens on.
        _ = fs::remove_file(&self.path);
    }
}

/// What a daemon that did not end in order has left is not to be taken for the next one's.
pub(crate) fn forget(state: &Path) -> io::Result<()> {
    remove(&file_in(state))
}

/// The socket of the daemon that works there or has worked there, if it is this user who says so.
pub(crate) fn read(state: &Path) -> Option<PathBuf> {
    let mut file = File::open(file_in(state)).ok()?;
    let found = file.metadata().ok()?;
    let ours = found.is_file() && found.uid() == geteuid().as_raw() && found.mode() & 0o022 == 0;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).ok().filter(|_| ours)?;
    Some(PathBuf::from(OsStr::from_bytes(&bytes))).filter(|path| path.is_absolute())
}

fn file_in(state: &Path) -> PathBuf {
    state.join("address")
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn an_address_is_there_for_as_long_as_its_daemon() {
        let state = tempfile::tempdir().unwrap();
        let file = AddressFile::write(state.path(), Path::new("/run/socket")).unwrap();
        assert_eq!(read(state.path()), Some("/run/socket".into()));
        assert_eq!(fs::metadata(state.path().join("address")).unwrap().mode() & 0o777, 0o600);
        drop(file);
        assert_eq!(read(state.path()), None);
    }

    #[test]
    fn an_address_that_others_can_change_is_not_taken() {
        let state = tempfile::tempdir().unwrap();
        let _file = AddressFile::write(state.path(), Path::new("/run/socket")).unwrap();
        let open = fs::Permissions::from_mode(0o666);
        fs::set_permissions(state.path().join("address"), open).unwrap();
        assert_eq!(read(state.path()), None);
    }
}
