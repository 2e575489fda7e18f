//! A unix socket for this user alone, which replaces the one of a dead server.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener as StdListener;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use tokio::net::UnixListener;

/// Why a socket cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum UnixError {
    #[error(
        "the socket path {path} is too long ({length} bytes, at most {MOST_BYTES}): choose a \
         shorter one", path = path.display(), length = path.as_os_str().len()
    )]
    TooLong { path: PathBuf },
    #[error(
        "another server already listens on {path}; stop it with `lastbyte shutdown --socket {path}`, or \
         choose another --socket", path = path.display()
    )]
    InUse { path: PathBuf },
    #[error("{path} exists and is not a socket; choose another --socket", path = path.display())]
    NotASocket { path: PathBuf },
    #[error("another server is creating a socket in {folder}", folder = folder.display())]
    Busy { folder: PathBuf },
    #[error("cannot create a socket in {folder}: {why}; choose another --socket", folder = folder.display())]
    Folder { folder: PathBuf, why: io::Error },
    #[error("cannot listen on {path}", path = path.display())]
    Listen { path: PathBuf, source: io::Error },
}

/// `sun_path` without the zero at its end.
const MOST_BYTES: usize = 107;
/// Connections that wait to be accepted; the kernel may allow fewer.
const BACKLOG: i32 = 1024;

/// A listening socket.
#[derive(Debug)]
pub(super) struct OwnSocket {
    pub(super) listener: UnixListener,
    pub(super) path: PathBuf,
    file: Ownership,
}

/// Whose the file of a socket is.
#[derive(Debug)]
enum Ownership {
    /// It goes with the listener.
    Ours { _file: SocketFile },
    /// It is removed by our keeper, and created again by us.
    Kept,
    /// It is neither ours to remove nor to create.
    Others,
}

/// The file of a listening socket, which is removed when this is dropped.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    /// Device and inode, to remove no other.
    identity: (u64, u64),
}

impl SocketFile {
    /// A socket for this user and root that listens. It replaces the one of a dead server.
    pub fn bind(path: &Path) -> Result<(StdListener, Self), UnixError> {
        if path.as_os_str().len() > MOST_BYTES {
            return Err(UnixError::TooLong { path: path.into() });
        }
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            Some(_) | None => Path::new("."),
        };
        // Until it listens, another server would take it for a dead one's: keep others out meanwhile.
        let _lock = lock(folder)?;
        remove_stale(path)?;
        Self::bind_locked(path).map_err(|source| UnixError::Listen { path: path.into(), source })
    }

    fn bind_locked(path: &Path) -> io::Result<(StdListener, Self)> {
        let socket = socket()?;
        rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
        // Before it listens, so that nobody else can ever connect.
        let ready = fs::set_permissions(path, PermissionsExt::from_mode(0o600))
            .and_then(|()| Ok(rustix::net::listen(&socket, BACKLOG)?))
            .and_then(|()| Ok(identity(&fs::symlink_metadata(path)?)));
        let identity = ready.inspect_err(|_| {
            _ = fs::remove_file(path); // the first error is the one to tell
        })?;
        Ok((socket.into(), Self { path: path.into(), identity }))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl OwnSocket {
    /// Must be called on a runtime.
    pub(super) fn bind(path: &Path) -> Result<Self, UnixError> {
        let (listener, file) = SocketFile::bind(path)?;
        let listener = UnixListener::from_std(listener)
            .map_err(|source| UnixError::Listen { path: path.into(), source })?;
        Ok(Self { listener, path: path.into(), file: Ownership::Ours { _file: file } })
    }

    /// One that listens already, whose file stays. Must be called on a runtime.
    pub(super) fn handed_over(listener: StdListener) -> io::Result<Self> {
        let path = path_of(&listener)?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener: UnixListener::from_std(listener)?, path, file: Ownership::Others })
    }

    /// One that our keeper has, too, and whose file it removes. If a worker before us has created
    /// the file again, it has died with the listener: then it is created once more. Must be called
    /// on a runtime.
    pub(super) fn kept(listener: StdListener) -> Result<Self, UnixError> {
        let path = path_of(&listener);
        let path = path.map_err(|source| UnixError::Listen { path: PathBuf::new(), source })?;
        if matches!(connect(&path), Err(Errno::CONNREFUSED | Errno::NOENT)) {
            return Self::bind(&path);
        }
        let failed = |source| UnixError::Listen { path: path.clone(), source };
        listener.set_nonblocking(true).map_err(failed)?;
        let listener = UnixListener::from_std(listener).map_err(failed)?;
        Ok(Self { listener, path, file: Ownership::Kept })
    }

    /// Whether the file was removed, so that no client can connect. An inherited socket is left to
    /// its owner, and so is a file of another server in its place.
    pub(super) fn is_gone(&self) -> bool {
        let found = fs::symlink_metadata(&self.path);
        let is_missing = found.is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
        is_missing && !matches!(self.file, Ownership::Others)
    }
}

fn path_of(listener: &StdListener) -> io::Result<PathBuf> {
    let address = listener.local_addr()?;
    let unnamed = || io::Error::new(io::ErrorKind::InvalidInput, "it has no path");
    Ok(address.as_pathname().ok_or_else(unnamed)?.to_owned())
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let ours = |found| identity(&found) == self.identity;
        if fs::symlink_metadata(&self.path).is_ok_and(ours) {
            // What stays is removed by the next server.
            _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(file: &fs::Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

/// The folder, made for this user alone if it is missing, and locked against other servers.
fn lock(folder: &Path) -> Result<File, UnixError> {
    let failed = |why| UnixError::Folder { folder: folder.into(), why };
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    let lock = File::open(folder).map_err(failed)?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(lock),
        Err(Errno::WOULDBLOCK) => Err(UnixError::Busy { folder: folder.into() }),
        Err(errno) => Err(failed(errno.into())),
    }
}

/// Removes a socket that refuses connections: no process listens on it, nor ever will again.
fn remove_stale(path: &Path) -> Result<(), UnixError> {
    let failed = |source| UnixError::Listen { path: path.into(), source };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(failed(source)),
        Ok(found) if !found.file_type().is_socket() => {
            return Err(UnixError::NotASocket { path: path.into() });
        }
        Ok(_) => {}
    }
    match connect(path) {
        Err(Errno::CONNREFUSED) => fs::remove_file(path).map_err(failed),
        // Its backlog is full: it is alive.
        Ok(()) | Err(Errno::AGAIN) => Err(UnixError::InUse { path: path.into() }),
        Err(errno) => Err(failed(errno.into())),
    }
}

fn connect(path: &Path) -> Result<(), Errno> {
    rustix::net::connect(socket()?, &SocketAddrUnix::new(path)?)
}

fn socket() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[tokio::test]
    async fn folder_and_socket_are_for_this_user_alone_and_the_socket_goes() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("a/b/socket");
        let socket = OwnSocket::bind(&path).unwrap();
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(&temp.path().join("a")), 0o700);
        assert_eq!(mode(&temp.path().join("a/b")), 0o700);
        drop(socket);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn a_dead_servers_socket_is_replaced() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("socket");
        drop(StdListener::bind(&path).unwrap());
        assert!(path.exists());
        let socket = OwnSocket::bind(&path).unwrap();
        assert_eq!(connect(&path), Ok(()));
        drop(socket);
    }

    #[tokio::test]
    async fn a_living_servers_socket_is_left_alone() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("socket");
        let _living = StdListener::bind(&path).unwrap();
        let error = OwnSocket::bind(&path).unwrap_err();
        assert!(matches!(error, UnixError::InUse { .. }), "{error}");
        assert_eq!(connect(&path), Ok(()));
    }

    #[tokio::test]
    async fn what_is_no_socket_is_left_alone() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("socket");
        fs::write(&path, "precious").unwrap();
        let error = OwnSocket::bind(&path).unwrap_err();
        assert!(matches!(error, UnixError::NotASocket { .. }), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    }

    #[tokio::test]
    async fn another_servers_file_is_not_removed() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("socket");
        let socket = OwnSocket::bind(&path).unwrap();
        // A name of its own keeps the inode from being given out again.
        fs::rename(&path, temp.path().join("moved")).unwrap();
        let _other = StdListener::bind(&path).unwrap();
        drop(socket);
        assert!(path.exists());
    }

    #[tokio::test]
    async fn a_path_that_fits_no_address_is_named() {
        let temp = tempfile::tempdir().unwrap();
        let room = MOST_BYTES - temp.path().as_os_str().len() - 1;
        OwnSocket::bind(&temp.path().join("x".repeat(room))).unwrap();
        let error = OwnSocket::bind(&temp.path().join("x".repeat(room + 1))).unwrap_err();
        assert!(error.to_string().contains("108 bytes"), "{error}");
    }

    #[tokio::test]
    async fn two_servers_do_not_make_a_socket_at_once() {
        let temp = tempfile::tempdir().unwrap();
        let _lock = lock(temp.path()).unwrap();
        let error = OwnSocket::bind(&temp.path().join("socket")).unwrap_err();
        assert!(matches!(error, UnixError::Busy { .. }), "{error}");
    }
}
