//! A policy turned into lists of paths: pure, but for a look at where a path leads.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use lastbyte_sys::Errno;

use super::error::{Needs, SandboxError};
use super::{Network, Sandbox, Workspace};

/// What a policy depends on beside itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct Places<'a> {
    pub(super) cwd: &'a Path,
    /// `TMPDIR` of the command.
    pub(super) tmpdir: Option<&'a OsStr>,
    /// Folders of the server's own.
    pub(super) hidden: &'a [PathBuf],
}

/// Where a path leads: absolute, without links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Resolved {
    pub(super) path: PathBuf,
    pub(super) folder: bool,
}

/// What can be written and what cannot, in paths without links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) network: Network,
    /// None lies inside another.
    pub(super) roots: Vec<PathBuf>,
    /// What in them cannot be written.
    pub(super) protected: Vec<PathBuf>,
    /// What cannot be seen, wherever it lies.
    pub(super) hidden: Vec<PathBuf>,
    /// Folders between a root and something protected or hidden: one that could be renamed would
    /// take it along and leave its name free. Outer ones first.
    pub(super) steadied: Vec<PathBuf>,
    /// Where programs share memory among themselves; they get a folder of their own there.
    pub(super) shared_memory: Option<PathBuf>,
}

const SHARED_MEMORY: &str = "/dev/shm";

impl Plan {
    pub(super) fn new(
        sandbox: &Sandbox,
        places: Places<'_>,
        resolve: impl Fn(&Path) -> Result<Resolved, Errno>,
    ) -> Result<Option<Self>, SandboxError> {
        // Nothing is looked at for who is kept from nothing.
        if !sandbox.confines() {
            return Ok(None);
        }
        let planner = Planner { places, hidden: hidden(places.hidden, &resolve)?, resolve };
        match sandbox {
            Sandbox::FullAccess | Sandbox::External => Ok(None),
            Sandbox::ReadOnly { network } => planner.read_only(*network).map(Some),
            Sandbox::WorkspaceWrite(workspace) => planner.workspace(workspace).map(Some),
        }
    }

    /// What of it only namespaces can give.
    pub(super) fn needs(&self) -> Option<Needs> {
        if let Some(path) = self.protected.first() {
            return Some(Needs::Protect { path: path.clone() });
        }
        let exposed = self.hidden.iter().find(|path| inside_any(path, &self.roots));
        match (exposed, self.network) {
            (Some(path), _) => Some(Needs::HiddenInRoot { path: path.clone() }),
            (None, Network::On) if !self.hidden.is_empty() => Some(Needs::Network),
            (None, Network::On | Network::Off) => None,
        }
    }
}

struct Planner<'a, R> {
    places: Places<'a>,
    hidden: Vec<PathBuf>,
    resolve: R,
}

impl<R: Fn(&Path) -> Result<Resolved, Errno>> Planner<'_, R> {
    fn read_only(self, network: Network) -> Result<Plan, SandboxError> {
        self.check_cwd()?;
        Ok(Plan {
            network,
            roots: vec![],
            protected: vec![],
            hidden: self.hidden,
            steadied: vec![],
            shared_memory: None,
        })
    }

    fn workspace(self, workspace: &Workspace) -> Result<Plan, SandboxError> {
        self.check_cwd()?;
        let named = self.named_roots(workspace)?;
        let all = named.iter().map(|(_, root)| root.clone()).chain(self.tmp_roots(workspace));
        let roots = outermost(all.collect());
        let protected = self.protected(workspace, &named, &roots)?;
        let steadied = steadied(&roots, &protected, &self.hidden);
        let shared_memory = self.shared_memory(&roots);
        let Workspace { network, .. } = *workspace;
        Ok(Plan { network, roots, protected, hidden: self.hidden, steadied, shared_memory })
    }

    fn check_cwd(&self) -> Result<(), SandboxError> {
        let cwd = (self.resolve)(self.places.cwd);
        match cwd.is_ok_and(|cwd| inside_any(&cwd.path, &self.hidden)) {
            true => Err(SandboxError::CwdHidden { path: self.places.cwd.to_owned() }),
            // One that is not there is told of when it is entered.
            false => Ok(()),
        }
    }

    /// Those that were asked for: each as it was written and where it leads.
    fn named_roots(&self, workspace: &Workspace) -> Result<Vec<(PathBuf, PathBuf)>, SandboxError> {
        let cwd = workspace.cwd.then_some(self.places.cwd);
        let named = cwd.into_iter().chain(workspace.roots.iter().map(PathBuf::as_path));
        named.map(|root| Ok((root.to_owned(), self.root(root)?))).collect()
    }

    fn root(&self, root: &Path) -> Result<PathBuf, SandboxError> {
        let path = root.to_owned();
        if !root.is_absolute() {
            return Err(SandboxError::RootRelative { path });
        }
        match (self.resolve)(root) {
            Err(errno) => Err(SandboxError::Root { path, errno }),
            Ok(found) if !found.folder => Err(SandboxError::Root { path, errno: Errno::NOTDIR }),
            Ok(found) if is_all(&found.path) => Err(SandboxError::RootIsAll { path }),
            Ok(found) if is_the_kernels(&found.path) => Err(SandboxError::RootOfKernel { path }),
            Ok(found) if inside_any(&found.path, &self.hidden) => {
                Err(SandboxError::RootHidden { path })
            }
            Ok(found) => Ok(found.path),
        }
    }

    /// Those that come by custom, so far as they make sense as roots.
    fn tmp_roots(&self, workspace: &Workspace) -> impl Iterator<Item = PathBuf> {
        let slash_tmp = workspace.slash_tmp.then_some(Path::new("/tmp"));
        let tmpdir = self.places.tmpdir.filter(|_| workspace.tmpdir).map(Path::new);
        slash_tmp.into_iter().chain(tmpdir).filter_map(|root| self.root(root).ok())
    }

    fn shared_memory(&self, roots: &[PathBuf]) -> Option<PathBuf> {
        let found = (self.resolve)(Path::new(SHARED_MEMORY)).ok().filter(|found| found.folder)?;
        let hides = self.hidden.iter().any(|hidden| hidden.starts_with(&found.path));
        let usable =
            !inside_any(&found.path, roots) && !inside_any(&found.path, &self.hidden) && !hides;
        usable.then_some(found.path)
    }

    fn protected(
        &self,
        workspace: &Workspace,
        named: &[(PathBuf, PathBuf)],
        roots: &[PathBuf],
    ) -> Result<Vec<PathBuf>, SandboxError> {
        let mut protected = BTreeSet::new();
        for path in &workspace.protect {
            let found = (self.resolve)(path);
            let found =
                found.map_err(|errno| SandboxError::Protect { path: path.clone(), errno })?.path;
            // Through a root as it was written, or as it is.
            let as_is = roots.iter().map(|root| (root, root));
            let ways = named.iter().map(|(written, root)| (written, root)).chain(as_is);
            if ways.into_iter().any(|(way, root)| leads_elsewhere(path, way, root, &found)) {
                return Err(SandboxError::ProtectLink { path: path.clone() });
            }
            if roots.iter().any(|root| root.starts_with(&found) && *root != found) {
                return Err(SandboxError::ProtectAbove { path: path.clone() });
            }
            // Elsewhere nothing can be written anyway.
            if inside_any(&found, roots) && !inside_any(&found, &self.hidden) {
                protected.insert(found);
            }
        }
        Ok(outermost(protected.into_iter().collect()))
    }
}

/// Whether a path that begins with a root's leads somewhere else than it says.
fn leads_elsewhere(path: &Path, way: &Path, root: &Path, found: &Path) -> bool {
    path.strip_prefix(way).is_ok_and(|rest| root.join(rest) != found)
}

fn hidden(
    folders: &[PathBuf],
    resolve: impl Fn(&Path) -> Result<Resolved, Errno>,
) -> Result<Vec<PathBuf>, SandboxError> {
    let mut hidden = Vec::new();
    for path in folders {
        let fault = |errno| SandboxError::Hide { path: path.clone(), errno };
        match resolve(path) {
            Ok(found) if found.folder => hidden.push(found.path),
            Ok(_) => return Err(fault(Errno::NOTDIR)),
            // Nothing to hide.
            Err(Errno::NOENT | Errno::NOTDIR) => {}
            Err(errno) => return Err(fault(errno)),
        }
    }
    Ok(outermost(hidden))
}

/// Without duplicates and without what lies inside another.
fn outermost(mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
    // In this order a folder comes right before all that lies in it.
    paths.sort();
    paths.dedup_by(|later, earlier| later.starts_with(&*earlier));
    paths
}

fn steadied(roots: &[PathBuf], protected: &[PathBuf], hidden: &[PathBuf]) -> Vec<PathBuf> {
    let targets = protected.iter().chain(hidden);
    let between = |target: &PathBuf| -> Vec<PathBuf> {
        let root = roots.iter().find(|root| target.starts_with(root));
        let above = target.ancestors().skip(1);
        let in_root =
            |above: &&Path| root.is_some_and(|root| above.starts_with(root) && *above != root);
        above.take_while(in_root).map(Path::to_owned).collect()
    };
    let all: BTreeSet<PathBuf> = targets.flat_map(between).collect();
    // In a protected folder nothing can be renamed.
    let mut all: Vec<PathBuf> =
        all.into_iter().filter(|path| !inside_any(path, protected)).collect();
    all.sort_by_key(|path| path.components().count());
    all
}

fn inside_any(path: &Path, folders: &[PathBuf]) -> bool {
    folders.iter().any(|folder| path.starts_with(folder))
}

/// Files there are switches of the kernel and devices.
fn is_the_kernels(path: &Path) -> bool {
    let theirs = ["/proc", "/sys", "/dev"].iter().any(|folder| path.starts_with(folder));
    theirs && !path.starts_with(SHARED_MEMORY)
}

fn is_all(path: &Path) -> bool {
    path.parent().is_none()
}
