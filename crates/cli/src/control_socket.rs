//! A unix socket in the file system: for this user alone, and gone with its owner.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use anyhow::Context;
use rustix::fs::{Mode, fchmod};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with,
};

/// A bound socket; its file is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct ControlSocket {
    listener: UnixListener,
    path: PathBuf,
    /// Which file it is: another server may have taken the place.
    file: (u64, u64),
}

/// Clients that may wait to be accepted, as in the standard library.
const BACKLOG: i32 = 128;

impl ControlSocket {
    /// Takes the place of a socket that nobody listens on any more.
    pub(crate) fn bind(path: &Path) -> anyhow::Result<Self> {
        Self::try_bind(path).with_context(|| format!("cannot listen on {}", path.display()))
    }

    fn try_bind(path: &Path) -> io::Result<Self> {
        if is_abandoned(path) {
            fs::remove_file(path)?;
        }
        let socket =
            socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        // The file gets the mode of the socket, so it is at no moment there for others.
        fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
        bind(&socket, &SocketAddrUnix::new(path)?)?;
        listen(&socket, BACKLOG)?;
        Ok(Self { listener: socket.into(), path: path.to_owned(), file: identity(path)? })
    }

    /// To be listened on for as long as this lives.
    pub(crate) fn listen(&self) -> io::Result<UnixListener> {
        self.listener.try_clone()
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|file| file == self.file) {
            // What cannot be removed is taken over by the next server.
            _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let found = fs::symlink_metadata(path)?;
    Ok((found.dev(), found.ino()))
}

/// A socket that refuses connections has no listener.
fn is_abandoned(path: &Path) -> bool {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    is_socket && UnixStream::connect(path).is_err_and(refused)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_socket_is_for_its_user_alone_and_goes_with_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let socket = ControlSocket::bind(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        drop(socket);
        assert!(!path.exists());
    }

    #[test]
    fn an_abandoned_socket_is_replaced_and_a_living_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        drop(UnixListener::bind(&path).unwrap());
        let socket = ControlSocket::bind(&path).unwrap();
        assert!(ControlSocket::bind(&path).is_err());
        assert!(UnixStream::connect(&path).is_ok());
        drop(socket);
    }

    #[test]
    fn a_file_that_is_no_socket_is_let_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes");
        fs::write(&path, "notes").unwrap();
        assert!(ControlSocket::bind(&path).is_err());
        assert_eq!(fs::read(&path).unwrap(), b"notes");
    }
}
