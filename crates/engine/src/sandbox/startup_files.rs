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

/// Something to protect below a home folder.
#[derive(Debug, Clone, Copy)]
pub(super) struct StartupFile {
    pub(super) name: &'static str,
    pub(super) if_missing: IfMissing,
}

/// What to do if it does not exist.
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

const fn file(name: &'static str, program: &'static str) -> StartupFile {
    StartupFile { name, if_missing: IfMissing::FileFor(program) }
}

const fn folder(name: &'static str) -> StartupFile {
    StartupFile { name, if_missing: IfMissing::Folder }
}

const fn folder_in_folder(name: &'static str) -> StartupFile {
    StartupFile { name, if_missing: IfMissing::FolderInFolder }
}

const fn if_there(name: &'static str) -> StartupFile {
    StartupFile { name, if_missing: IfMissing::Leave }
}

/// The list in docs/security.md.
pub(super) const STARTUP_FILES: [StartupFile; 34] = [
    // Settings of most programs: desktop autostart, systemd user units, fish, git.
    folder(".config"),
    folder(".ssh"),
    folder(".local/bin"),
    // Units and services are run at login, applications when a file of their type is opened.
    folder(".local/share/systemd"),
    folder(".local/share/dbus-1"),
    folder(".local/share/applications"),
    // On the path once Rust is installed.
    folder_in_folder(".cargo/bin"),
    file(".profile", "sh"),
    file(".bashrc", "bash"),
    StartupFile { name: ".bash_profile", if_missing: IfMissing::BashProfile },
    // Not read if there is a `.bash_profile`.
    if_there(".bash_login"),
    file(".bash_logout", "bash"),
    file(".bash_aliases", "bash"),
    file(".zshenv", "zsh"),
    file(".zprofile", "zsh"),
    file(".zshrc", "zsh"),
    file(".zlogin", "zsh"),
    file(".zlogout", "zsh"),
    file(".kshrc", "ksh"),
    file(".mkshrc", "mksh"),
    file(".cshrc", "csh"),
    file(".tcshrc", "tcsh"),
    file(".login", "csh"),
    file(".gitconfig", "git"),
    file(".xprofile", "Xorg"),
    file(".xsessionrc", "Xorg"),
    file(".pam_environment", "login"),
    // An empty session would end at once.
    if_there(".xsession"),
    if_there(".xinitrc"),
    if_there(".Xsession"),
    if_there("bin"),
    if_there(".git-templates"),
    if_there(".cargo/env"),
    if_there(".cargo/config.toml"),
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
