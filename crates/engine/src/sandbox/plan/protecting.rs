//! What is protected inside a root without being named: the server's own files, and startup files.

use std::path::{Path, PathBuf};

use lastbyte_sys::Errno;
use lastbyte_sys::resolve::{FileId, Resolved, Unresolved};

use super::{NamedRoot, Planner, inside_any};
use crate::sandbox::startup_files::{Absent, IfMissing, STARTUP_FILES};
use crate::sandbox::{SandboxError, StartupFiles, Workspace};

/// What to protect, and what to create for that.
#[derive(Default)]
pub(super) struct Protecting {
    pub(super) protected: Vec<PathBuf>,
    pub(super) absent: Vec<Absent>,
}

impl Protecting {
    pub(super) fn first(&self) -> Option<PathBuf> {
        let absent = self.absent.iter().map(|absent| &absent.path);
        self.protected.iter().chain(absent).next().cloned()
    }
}

impl<R: Fn(&Path) -> Result<Resolved, Unresolved>> Planner<'_, R> {
    /// The server's own folders that do not exist and could be created in a root.
    pub(super) fn absent_hidden(&self, roots: &[PathBuf]) -> Vec<Absent> {
        let missing = self.missing.iter().filter(|path| self.would_be_in_a_root(path, roots));
        let absent = |path: &PathBuf| Absent { path: path.clone(), if_missing: IfMissing::Folder };
        missing.map(absent).collect()
    }

    fn would_be_in_a_root(&self, missing: &Path, roots: &[PathBuf]) -> bool {
        let there = missing.ancestors().skip(1).find_map(|above| self.find(above).ok());
        there.is_some_and(|there| inside_any(&there.path, roots))
    }

    pub(super) fn own_files(&self, roots: &[PathBuf]) -> Result<Vec<PathBuf>, SandboxError> {
        let mut all = Protecting::default();
        for path in self.places.protected {
            // A command could create it, and no harmless contents are known for it.
            if self.find(path) == Err(Errno::NOENT) && self.would_be_in_a_root(path, roots) {
                return Err(SandboxError::Protect { path: path.clone(), errno: Errno::NOENT });
            }
            self.startup_file(path.clone(), IfMissing::Leave, roots, &mut all)?;
        }
        Ok(all.protected)
    }

    /// The startup files in a writable home folder, unless their owner has named them as roots.
    pub(super) fn startup_files(
        &self,
        workspace: &Workspace,
        named: &[NamedRoot<'_>],
        roots: &[PathBuf],
    ) -> Result<Protecting, SandboxError> {
        let mut all = Protecting::default();
        if workspace.startup_files == StartupFiles::Writable {
            return Ok(all);
        }
        for home in self.places.homes {
            let home = match self.look(home) {
                Ok(found) => found,
                Err(Unresolved { errno: Errno::NOENT, .. }) => continue,
                Err(unresolved) => {
                    self.protect_obstacle(home, unresolved, roots, &mut all)?;
                    continue;
                }
            };
            self.protect_links(&home, roots, &mut all);
            let meets =
                |root: &PathBuf| home.path.starts_with(root) || root.starts_with(&home.path);
            if !roots.iter().any(meets) {
                continue;
            }
            for (name, if_missing) in STARTUP_FILES {
                let path = home.path.join(name);
                let is_named = named.iter().any(|root| root.found.path.starts_with(&path));
                if inside_any(&path, roots) && !is_named {
                    self.startup_file(path, if_missing, roots, &mut all)?;
                }
            }
        }
        self.config_home(named, roots, &mut all)?;
        Ok(all)
    }

    /// `XDG_CONFIG_HOME`, which programs use in place of `.config` in a home.
    fn config_home(
        &self,
        named: &[NamedRoot<'_>],
        roots: &[PathBuf],
        all: &mut Protecting,
    ) -> Result<(), SandboxError> {
        let Some(path) = self.places.config_home else { return Ok(()) };
        let is_named =
            |found: &Resolved| named.iter().any(|root| root.found.path.starts_with(&found.path));
        match self.find(path) {
            Ok(found) if is_named(&found) => Ok(()),
            Err(Errno::NOENT) if !self.would_be_in_a_root(path, roots) => Ok(()),
            Ok(_) | Err(_) => self.startup_file(path.to_owned(), IfMissing::Folder, roots, all),
        }
    }

    fn startup_file(
        &self,
        path: PathBuf,
        if_missing: IfMissing,
        roots: &[PathBuf],
        all: &mut Protecting,
    ) -> Result<(), SandboxError> {
        match self.look(&path) {
            Ok(found) => self.protect(found, roots, all),
            Err(Unresolved { errno: Errno::NOENT, .. }) if if_missing.is_made(&path) => {
                all.absent.push(Absent { path, if_missing });
            }
            Err(Unresolved { errno: Errno::NOENT, .. }) => {}
            Err(unresolved) => self.protect_obstacle(&path, unresolved, roots, all)?,
        }
        Ok(())
    }

    /// Protects a link together with its target: a command could write either.
    fn protect(&self, found: Resolved, roots: &[PathBuf], all: &mut Protecting) {
        self.protect_links(&found, roots, all);
        self.protect_file(found.path, found.file, roots, all);
    }

    fn protect_links(&self, found: &Resolved, roots: &[PathBuf], all: &mut Protecting) {
        for link in &found.links {
            self.protect_file(link.path.clone(), link.file, roots, all);
        }
    }

    fn protect_file(&self, path: PathBuf, file: FileId, roots: &[PathBuf], all: &mut Protecting) {
        // A root that is protected as a whole would not be writable.
        if inside_any(&path, roots) && !roots.contains(&path) {
            self.files.borrow_mut().insert(path.clone(), file);
            all.protected.push(path);
        }
    }

    /// Protects the folder that refuses to be searched, or the file in place of a folder. A command
    /// could change the mode of the folder or replace the file, and then write what is behind it.
    fn protect_obstacle(
        &self,
        path: &Path,
        Unresolved { errno, at }: Unresolved,
        roots: &[PathBuf],
        all: &mut Protecting,
    ) -> Result<(), SandboxError> {
        match at.filter(|at| !roots.contains(&at.path)) {
            Some(at) => {
                self.protect(at, roots, all);
                Ok(())
            }
            None => Err(SandboxError::Protect { path: path.to_owned(), errno }),
        }
    }
}
