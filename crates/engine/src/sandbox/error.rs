//! Why a command was not started under its policy.

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
         or allow its user to make user namespaces"
    )]
    NeedsNamespaces { needs: Needs },
    #[error("the writable root {path} is not an absolute path", path = path.display())]
    RootRelative { path: PathBuf },
    #[error("cannot use the writable root {path}", path = path.display())]
    Root {
        path: PathBuf,
        #[source]
        errno: Errno,
    },
    #[error(
        "the writable root {path} is the whole system: name the folders that may be written, or \
         ask for full access",
        path = path.display()
    )]
    RootIsAll { path: PathBuf },
    #[error(
        "the writable root {path} holds devices or switches of the kernel, which no policy gives",
        path = path.display()
    )]
    RootOfKernel { path: PathBuf },
    #[error("the writable root {path} lies in a folder that the server keeps to itself", path = path.display())]
    RootHidden { path: PathBuf },
    #[error("the working directory {path} lies in a folder that the server keeps to itself", path = path.display())]
    CwdHidden { path: PathBuf },
    #[error(
        "cannot protect {path}: what is not there can be made, so make it first or leave it out",
        path = path.display()
    )]
    Protect {
        path: PathBuf,
        #[source]
        errno: Errno,
    },
    #[error(
        "cannot protect {path}: a link on its way could be turned elsewhere, so name the path it \
         leads to",
        path = path.display()
    )]
    ProtectLink { path: PathBuf },
    #[error(
        "cannot protect {path}: a folder in it is to be writable, so name what is in that",
        path = path.display()
    )]
    ProtectAbove { path: PathBuf },
    #[error("cannot hide {path}, which the server keeps to itself", path = path.display())]
    Hide {
        path: PathBuf,
        #[source]
        errno: Errno,
    },
}

/// What only mounts of its own can give.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Needs {
    #[error("protecting {path} inside a writable root", path = path.display())]
    Protect { path: PathBuf },
    #[error("keeping the server's own folder {path} out of a writable root", path = path.display())]
    HiddenInRoot { path: PathBuf },
    #[error("a command with the network, from which the server's token has to be hidden,")]
    Network,
}
