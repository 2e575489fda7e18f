use std::path::PathBuf;

use lastbyte_sys::Errno;

use super::enforcement::Missing;

/// Why a command was not started under a policy. It is never started without it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SandboxError {
    #[error("no sandbox policy can be enforced on this machine, so the command was not started")]
    NotEnforceable(#[source] Missing),
    #[error(
        "{needs} needs a mount namespace, so the command was not started: run the server as root, \
         or allow its user to create user namespaces"
    )]
    NeedsNamespaces { needs: Needs },
    #[error("the writable directory {path} is not an absolute path", path = path.display())]
    RootRelative { path: PathBuf },
    #[error("cannot use the writable directory {path}", path = path.display())]
    Root {
        path: PathBuf,
        #[source]
        errno: Errno,
    },
    #[error(
        "the writable directory {path} is the whole system: name the directories that may be written, or \
         use no sandbox",
        path = path.display()
    )]
    RootIsAll { path: PathBuf },
    #[error(
        "the writable directory {path} holds devices or kernel settings, which no sandbox allows to be \
         written",
        path = path.display()
    )]
    RootOfKernel { path: PathBuf },
    #[error("the writable directory {path} is inside a directory that only the server may use", path = path.display())]
    RootHidden { path: PathBuf },
    #[error(
        "the writable directory {path} leads through the symbolic link {link}, which a sandboxed command \
         could have made: give the path of the directory itself",
        path = path.display(), link = link.display()
    )]
    RootLink { path: PathBuf, link: PathBuf },
    #[error(
        "the writable directory {path} is not the directory that it was at its first use, and a \
         sandboxed command could have put this one in its place: rename it back, or use another path",
        path = path.display()
    )]
    RootReplaced { path: PathBuf },
    #[error(
        "the working directory {path} leads through the symbolic link {link}, which a sandboxed \
         command could have created: give the path of the directory itself",
        path = path.display(), link = link.display()
    )]
    CwdLink { path: PathBuf, link: PathBuf },
    #[error("cannot update the list of writable directories {path}", path = path.display())]
    Record {
        path: PathBuf,
        #[source]
        errno: Errno,
    },
    #[error("the working directory {path} is inside a directory that only the server may use", path = path.display())]
    CwdHidden { path: PathBuf },
    #[error("cannot protect {path}", path = path.display())]
    Protect {
        path: PathBuf,
        #[source]
        errno: Errno,
    },
    #[error(
        "cannot protect {path}: it leads through a symbolic link, which the command could change: \
         give the path it leads to",
        path = path.display()
    )]
    ProtectLink { path: PathBuf },
    #[error(
        "cannot protect {path}: a directory inside it is writable: protect what is inside that \
         directory",
        path = path.display()
    )]
    ProtectAbove { path: PathBuf },
    #[error(
        "cannot reach {path}, which only the server may use: {closed} cannot be searched: run \
         `chmod u+rwx {closed}`, or set HOME to a directory of your own if it belongs to another user",
        path = path.display(), closed = closed.display()
    )]
    OwnUnreachable { path: PathBuf, closed: PathBuf },
    #[error("cannot hide the server's private folder {path}", path = path.display())]
    Hide {
        path: PathBuf,
        #[source]
        errno: Errno,
    },
}

/// What requires a mount namespace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Needs {
    #[error("protecting {path} inside a writable directory", path = path.display())]
    Protect { path: PathBuf },
    #[error(
        "protecting {path}, which programs run outside of the sandbox (allow startup files, or use \
         a directory below the home directory as the workspace)",
        path = path.display()
    )]
    StartupFiles { path: PathBuf },
    #[error("keeping the server's own directory {path} out of a writable directory", path = path.display())]
    HiddenInRoot { path: PathBuf },
    #[error("hiding the server's token from a command with network access")]
    Network,
}
