//! Files below a home folder from which a shell, git, ssh or a desktop runs commands. A command
//! that could write one would run outside its sandbox at the next login.
//!
//! A mount can only protect what exists, so a missing one is created first, with harmless contents.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use lastbyte_sys::Errno;
use lastbyte_sys::user::is_own_user;

/// What to do if a startup file does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IfMissing {
    /// Create an empty folder.
    Folder,
    /// The same, if the folder above it exists.
    FolderInFolder,
    /// Create a file with a comment, if the program that reads it is installed.
    FileFor(&'static str),
    /// The same, and source the next of bash's three files: bash reads only the first it finds.
    BashProfile,
    /// Nothing: it runs nothing by itself, or an empty one would do harm.
    Leave,
}

/// What to protect below a home folder: the list in docs/security.md.
pub(super) const STARTUP_FILES: [(&str, IfMissing); 34] = [
    // Settings of most programs: desktop autostart, systemd user units, fish, git.
    (".config", IfMissing::Folder),
    (".ssh", IfMissing::Folder),
    (".local/bin", IfMissing::Folder),
    // Units and services are run at login, applications when a file of their type is opened.
    (".local/share/systemd", IfMissing::Folder),
    (".local/share/dbus-1", IfMissing::Folder),
    (".local/share/applications", IfMissing::Folder),
    // On the path once Rust is installed.
    (".cargo/bin", IfMissing::FolderInFolder),
    (".profile", IfMissing::FileFor("sh")),
    (".bashrc", IfMissing::FileFor("bash")),
    (".bash_profile", IfMissing::BashProfile),
    // Not read if there is a `.bash_profile`.
    (".bash_login", IfMissing::Leave),
    (".bash_logout", IfMissing::FileFor("bash")),
    (".bash_aliases", IfMissing::FileFor("bash")),
    (".zshenv", IfMissing::FileFor("zsh")),
    (".zprofile", IfMissing::FileFor("zsh")),
    (".zshrc", IfMissing::FileFor("zsh")),
    (".zlogin", IfMissing::FileFor("zsh")),
    (".zlogout", IfMissing::FileFor("zsh")),
    (".kshrc", IfMissing::FileFor("ksh")),
    (".mkshrc", IfMissing::FileFor("mksh")),
    (".cshrc", IfMissing::FileFor("csh")),
    (".tcshrc", IfMissing::FileFor("tcsh")),
    (".login", IfMissing::FileFor("csh")),
    (".gitconfig", IfMissing::FileFor("git")),
    (".xprofile", IfMissing::FileFor("Xorg")),
    (".xsessionrc", IfMissing::FileFor("Xorg")),
    (".pam_environment", IfMissing::FileFor("login")),
    // An empty session would end at once.
    (".xsession", IfMissing::Leave),
    (".xinitrc", IfMissing::Leave),
    (".Xsession", IfMissing::Leave),
    ("bin", IfMissing::Leave),
    (".git-templates", IfMissing::Leave),
    (".cargo/env", IfMissing::Leave),
    (".cargo/config.toml", IfMissing::Leave),
];

impl IfMissing {
    /// Whether to create a missing one. A file whose program is not installed is harmless.
    pub(super) fn is_made(self, path: &Path) -> bool {
        match self {
            Self::Folder => true,
            Self::FolderInFolder => path.parent().is_some_and(Path::is_dir),
            Self::FileFor(program) => is_installed(program),
            Self::BashProfile => is_installed("bash"),
            Self::Leave => false,
        }
    }
}

fn is_installed(program: &str) -> bool {
    let folders = ["/usr/bin", "/bin", "/usr/local/bin", "/usr/lib/xorg"];
    folders.iter().any(|folder| Path::new(folder).join(program).exists())
}

/// Something to protect or hide that does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Absent {
    pub(super) path: PathBuf,
    pub(super) if_missing: IfMissing,
}

impl Absent {
    /// Creates it, for this user only, unless another start has just created it. Never replaces
    /// anything, and never follows a link.
    pub(super) fn make(&self) -> Result<(), Errno> {
        let made = match self.if_missing {
            IfMissing::Folder | IfMissing::FolderInFolder => {
                DirBuilder::new().recursive(true).mode(0o700).create(&self.path)
            }
            IfMissing::FileFor(_) => self.write(COMMENT),
            IfMissing::BashProfile => self.write(&bash_profile(&self.path)),
            IfMissing::Leave => Ok(()),
        };
        made.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
    }

    /// Whether the folder in which to create it belongs to this user.
    pub(super) fn is_in_own_folder(&self) -> bool {
        let folder = self.path.ancestors().skip(1).find_map(|above| fs::metadata(above).ok());
        folder.is_none_or(|folder| is_own_user(folder.uid()))
    }

    fn write(&self, text: &str) -> io::Result<()> {
        match OpenOptions::new().write(true).create_new(true).mode(0o644).open(&self.path) {
            Ok(mut file) => file.write_all(text.as_bytes()),
            // A dangling link is not a file: a command could create its target.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && is_file(&self.path) => {
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}

fn is_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_file())
}

const COMMENT: &str =
    "# Created by lastbyte so that a sandboxed command cannot create it. You can edit this file.\n";

fn bash_profile(path: &Path) -> String {
    let login = path.with_file_name(".bash_login").exists();
    let next = if login { ".bash_login" } else { ".profile" };
    format!("{COMMENT}if [ -r ~/{next} ]; then . ~/{next}; fi\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_another_start_has_just_made_is_kept_and_a_dangling_link_is_an_error() {
        let home = tempfile::tempdir().unwrap();
        let absent = |name: &str| Absent {
            path: home.path().join(name),
            if_missing: IfMissing::FileFor("sh"),
        };
        fs::write(home.path().join(".profile"), "PS1=x").unwrap();
        assert_eq!(absent(".profile").make(), Ok(()));
        assert_eq!(fs::read(home.path().join(".profile")).unwrap(), b"PS1=x");
        std::os::unix::fs::symlink("missing", home.path().join(".bashrc")).unwrap();
        assert_eq!(absent(".bashrc").make(), Err(Errno::EXIST));
        assert!(!home.path().join("missing").exists());
    }
}
