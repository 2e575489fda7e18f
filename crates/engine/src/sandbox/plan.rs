//! Turns a policy into lists of paths. Pure, except that it resolves paths.

mod protecting;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lastbyte_sys::Errno;
use lastbyte_sys::resolve::{FileId, Link, Resolved, Unresolved};

use super::error::{Needs, SandboxError};
use super::root_record::{Folders, Used};
use super::startup_files::Absent;
use super::{Network, Sandbox, Workspace};

/// What a policy depends on besides itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct Places<'a> {
    pub(super) cwd: &'a Path,
    /// The command's `TMPDIR`.
    pub(super) tmpdir: Option<&'a OsStr>,
    /// The server's own folders.
    pub(super) hidden: &'a [PathBuf],
    /// The server's own files that commands may read.
    pub(super) protected: &'a [PathBuf],
    /// Home folders of the server's user.
    pub(super) homes: &'a [PathBuf],
    /// Where programs look for their settings instead of `.config` in a home.
    pub(super) config_home: Option<&'a Path>,
    /// Folders in which a confined command could have changed where a path leads.
    pub(super) written: &'a Folders,
}

/// What can and cannot be written, in paths without links.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct PathPlan {
    pub(super) network: Network,
    /// None is inside another.
    pub(super) roots: Vec<PathBuf>,
    /// Parts of the roots that cannot be written.
    pub(super) protected: Vec<PathBuf>,
    /// Folders that cannot be seen, wherever they are.
    pub(super) hidden: Vec<PathBuf>,
    /// Folders between a root and something protected or hidden. Renaming one would move the
    /// protected path and free its name. Outer ones first.
    pub(super) immovable: Vec<PathBuf>,
    /// Where programs share memory. Commands get their own folder there.
    pub(super) shared_memory: Option<PathBuf>,
    /// Where the working directory leads; `None` if it does not exist.
    pub(super) cwd: Option<PathBuf>,
    /// The file found at each of these paths.
    pub(super) files: BTreeMap<PathBuf, FileId>,
    /// Missing paths that must be protected or hidden in a root, and so have to be created first.
    pub(super) absent: Vec<Absent>,
    /// The first startup file that is protected or absent.
    pub(super) startup_file: Option<PathBuf>,
}

const SHARED_MEMORY: &str = "/dev/shm";

impl PathPlan {
    pub(super) fn new(
        sandbox: &Sandbox,
        places: Places<'_>,
        resolve: impl Fn(&Path) -> Result<Resolved, Unresolved>,
    ) -> Result<Option<Self>, SandboxError> {
        let planner = || Planner::new(places, resolve);
        match sandbox {
            // A policy without restrictions resolves no path.
            Sandbox::FullAccess | Sandbox::External => Ok(None),
            Sandbox::ReadOnly { network } => planner()?.read_only(*network).map(Some),
            Sandbox::WorkspaceWrite(workspace) => planner()?.workspace(workspace).map(Some),
        }
    }

    /// The part of the plan that requires namespaces.
    pub(super) fn needs(&self) -> Option<Needs> {
        if let Some(path) = &self.startup_file {
            return Some(Needs::StartupFiles { path: path.clone() });
        }
        if let Some(absent) = self.absent.first() {
            return Some(Needs::HiddenInRoot { path: absent.path.clone() });
        }
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

/// A root as written, and what that resolved to.
struct NamedRoot<'a> {
    written: &'a Path,
    found: Resolved,
}

struct Planner<'a, R> {
    places: Places<'a>,
    hidden: Vec<PathBuf>,
    /// Paths to hide that do not exist.
    missing: Vec<PathBuf>,
    resolve: R,
    files: RefCell<BTreeMap<PathBuf, FileId>>,
    /// Where each path leads. Resolved once, so that no two parts of a plan contradict each other.
    resolved: RefCell<BTreeMap<PathBuf, Result<Resolved, Unresolved>>>,
}

impl<'a, R: Fn(&Path) -> Result<Resolved, Unresolved>> Planner<'a, R> {
    fn new(places: Places<'a>, resolve: R) -> Result<Self, SandboxError> {
        let (hidden, missing) = (vec![], vec![]);
        let (files, resolved) = (RefCell::default(), RefCell::default());
        let mut planner = Self { places, hidden, missing, resolve, files, resolved };
        (planner.hidden, planner.missing) = planner.hidden_folders()?;
        Ok(planner)
    }

    /// Where a path leads. The child checks later that it still does.
    fn find(&self, path: &Path) -> Result<Resolved, Errno> {
        self.look(path).map_err(|unresolved| unresolved.errno)
    }

    fn look(&self, path: &Path) -> Result<Resolved, Unresolved> {
        if let Some(known) = self.resolved.borrow().get(path) {
            return known.clone();
        }
        let found = (self.resolve)(path);
        if let Ok(found) = &found {
            self.files.borrow_mut().insert(found.path.clone(), found.file);
        }
        self.resolved.borrow_mut().insert(path.to_owned(), found.clone());
        found
    }

    fn read_only(self, network: Network) -> Result<PathPlan, SandboxError> {
        let cwd = self.cwd()?.map(|cwd| cwd.path);
        let (hidden, files) = (self.hidden, self.files.into_inner());
        Ok(PathPlan { network, hidden, cwd, files, ..PathPlan::default() })
    }

    fn workspace(self, workspace: &Workspace) -> Result<PathPlan, SandboxError> {
        let cwd = self.cwd()?;
        let named = self.named_roots(workspace)?;
        let named_paths: Vec<PathBuf> = named.iter().map(|root| root.found.path.clone()).collect();
        let tmp_roots: Vec<PathBuf> = self.tmp_roots(workspace, &named_paths).collect();
        let roots = outermost([named_paths, tmp_roots].concat());
        if let Some(cwd) = &cwd
            && let Some(link) = self.doubtful_link(cwd, &roots)
        {
            return Err(SandboxError::CwdLink { path: self.places.cwd.to_owned(), link });
        }
        named.iter().try_for_each(|root| self.check_unchanged(root, &roots))?;
        let startup_files = self.startup_files(workspace, &named, &roots)?;
        let startup_file = startup_files.first();
        let mut protected = self.protected(workspace, &named, &roots)?;
        protected.extend(startup_files.protected);
        protected.extend(self.own_files(&roots)?);
        let protected = outermost(protected);
        let mut absent = self.absent_hidden(&roots);
        absent.extend(startup_files.absent);
        let immovable = immovable(&roots, &protected, &self.hidden);
        immovable.iter().try_for_each(|path| self.check_immovable(path))?;
        let shared_memory = self.shared_memory(&roots);
        let Workspace { network, .. } = *workspace;
        Ok(PathPlan {
            network,
            roots,
            protected,
            hidden: self.hidden,
            immovable,
            shared_memory,
            cwd: cwd.map(|cwd| cwd.path),
            files: self.files.into_inner(),
            absent,
            startup_file,
        })
    }

    /// `None` if it is missing: entering it then reports that.
    fn cwd(&self) -> Result<Option<Resolved>, SandboxError> {
        let Ok(cwd) = self.find(self.places.cwd) else { return Ok(None) };
        if inside_any(&cwd.path, &self.hidden) {
            return Err(SandboxError::CwdHidden { path: self.places.cwd.to_owned() });
        }
        Ok(Some(cwd))
    }

    /// The roots that the caller asked for.
    fn named_roots(&self, workspace: &'a Workspace) -> Result<Vec<NamedRoot<'a>>, SandboxError> {
        let cwd = workspace.cwd.then_some(self.places.cwd);
        let named = cwd.into_iter().chain(workspace.roots.iter().map(PathBuf::as_path));
        named.map(|written| Ok(NamedRoot { written, found: self.root(written)? })).collect()
    }

    fn root(&self, root: &Path) -> Result<Resolved, SandboxError> {
        let path = root.to_owned();
        if !root.is_absolute() {
            return Err(SandboxError::RootRelative { path });
        }
        match self.find(root) {
            Err(errno) => Err(SandboxError::Root { path, errno }),
            Ok(found) if !found.is_folder => Err(SandboxError::Root { path, errno: Errno::NOTDIR }),
            Ok(found) if is_all(&found.path) => Err(SandboxError::RootIsAll { path }),
            Ok(found) if is_kernel_folder(&found.path) => Err(SandboxError::RootOfKernel { path }),
            Ok(found) if inside_any(&found.path, &self.hidden) => {
                Err(SandboxError::RootHidden { path })
            }
            Ok(found) => Ok(found),
        }
    }

    /// A root must be the folder its owner meant, not one that a confined command put in its place.
    fn check_unchanged(&self, root: &NamedRoot<'_>, roots: &[PathBuf]) -> Result<(), SandboxError> {
        let path = root.written.to_owned();
        if let Some(link) = self.doubtful_link(&root.found, roots) {
            return Err(SandboxError::RootLink { path, link });
        }
        // Inside another root it is writable in any case.
        let first_use = self.places.written.first_use(&root.found.path);
        match first_use.filter(|_| roots.contains(&root.found.path)) {
            Some(used) if is_another(&root.found, used) => Err(SandboxError::RootReplaced { path }),
            Some(_) | None => Ok(()),
        }
    }

    /// A link on the way that a confined command could have created, before or under this policy.
    fn doubtful_link(&self, found: &Resolved, roots: &[PathBuf]) -> Option<PathBuf> {
        let doubtful = |link: &&Link| {
            let folder = link.path.parent().unwrap_or(Path::new("/"));
            self.places.written.contain(link) || inside_any(folder, roots)
        };
        found.links.iter().find(doubtful).map(|link| link.path.clone())
    }

    fn check_immovable(&self, path: &Path) -> Result<(), SandboxError> {
        let unable = |errno| SandboxError::Protect { path: path.to_owned(), errno };
        // Fails if a link was put there a moment ago.
        let found = self.find(path).map_err(unable)?;
        if found.path == path { Ok(()) } else { Err(unable(Errno::STALE)) }
    }

    /// The folders to hide: those that exist, and those that do not.
    fn hidden_folders(&self) -> Result<(Vec<PathBuf>, Vec<PathBuf>), SandboxError> {
        let (mut hidden, mut missing) = (Vec::new(), Vec::new());
        for path in self.places.hidden {
            let fault = |errno| SandboxError::Hide { path: path.clone(), errno };
            match self.look(path) {
                Ok(found) if found.is_folder => hidden.push(found.path),
                Ok(_) => return Err(fault(Errno::NOTDIR)),
                // Nothing to hide, unless a command could create it.
                Err(Unresolved { errno: Errno::NOENT | Errno::NOTDIR, .. }) => {
                    missing.push(path.clone());
                }
                Err(Unresolved { errno: Errno::ACCESS, at: Some(at) }) => {
                    let (path, closed) = (path.clone(), at.path);
                    return Err(SandboxError::OwnUnreachable { path, closed });
                }
                Err(Unresolved { errno, .. }) => return Err(fault(errno)),
            }
        }
        Ok((outermost(hidden), missing))
    }

    /// The temporary folders, if they are usable as roots beside the named ones.
    fn tmp_roots(&self, workspace: &Workspace, named: &[PathBuf]) -> impl Iterator<Item = PathBuf> {
        let slash_tmp = workspace.slash_tmp.then_some(Path::new("/tmp"));
        let tmpdir = self.places.tmpdir.filter(|_| workspace.tmpdir).map(Path::new);
        let found = slash_tmp.into_iter().chain(tmpdir).filter_map(|root| self.root(root).ok());
        found.filter(|found| self.doubtful_link(found, named).is_none()).map(|found| found.path)
    }

    fn shared_memory(&self, roots: &[PathBuf]) -> Option<PathBuf> {
        let found = self.find(Path::new(SHARED_MEMORY)).ok().filter(|found| found.is_folder)?;
        let hides = self.hidden.iter().any(|hidden| hidden.starts_with(&found.path));
        let usable =
            !inside_any(&found.path, roots) && !inside_any(&found.path, &self.hidden) && !hides;
        usable.then_some(found.path)
    }

    fn protected(
        &self,
        workspace: &Workspace,
        named: &[NamedRoot<'_>],
        roots: &[PathBuf],
    ) -> Result<Vec<PathBuf>, SandboxError> {
        let mut protected = Vec::new();
        for path in &workspace.protect {
            let found = self.find(path);
            let found =
                found.map_err(|errno| SandboxError::Protect { path: path.clone(), errno })?.path;
            // Check the path below each root as written, and as resolved.
            let as_is = roots.iter().map(|root| (root.as_path(), root));
            let ways = named.iter().map(|root| (root.written, &root.found.path)).chain(as_is);
            if ways.into_iter().any(|(way, root)| leads_elsewhere(path, way, root, &found)) {
                return Err(SandboxError::ProtectLink { path: path.clone() });
            }
            if roots.iter().any(|root| root.starts_with(&found) && *root != found) {
                return Err(SandboxError::ProtectAbove { path: path.clone() });
            }
            // Outside the roots nothing is writable anyway.
            if inside_any(&found, roots) && !inside_any(&found, &self.hidden) {
                protected.push(found);
            }
        }
        Ok(protected)
    }
}

/// Whether a path below a root leads somewhere other than it says.
fn leads_elsewhere(path: &Path, way: &Path, root: &Path, found: &Path) -> bool {
    path.strip_prefix(way).is_ok_and(|rest| root.join(rest) != found)
}

/// Whether a folder existed before the path was first used, under another name. A folder created
/// since, by the owner or by a command, is as good as one that was emptied.
fn is_another(found: &Resolved, first_use: Used) -> bool {
    let older = |born| first_use.since.duration_since(born).is_ok_and(|age| age > TICK);
    found.file != first_use.file && found.born.is_some_and(older)
}

/// The resolution of file system and record timestamps.
const TICK: Duration = Duration::from_secs(1);

/// Removes duplicates and paths inside another.
fn outermost(mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
    // Sorted like this, a folder comes right before everything inside it.
    paths.sort();
    paths.dedup_by(|later, earlier| later.starts_with(&*earlier));
    paths
}

fn immovable(roots: &[PathBuf], protected: &[PathBuf], hidden: &[PathBuf]) -> Vec<PathBuf> {
    let targets = protected.iter().chain(hidden);
    let between = |target: &PathBuf| -> Vec<PathBuf> {
        let root = roots.iter().find(|root| target.starts_with(root));
        let above = target.ancestors().skip(1);
        let in_root =
            |above: &&Path| root.is_some_and(|root| above.starts_with(root) && *above != root);
        above.take_while(in_root).map(Path::to_owned).collect()
    };
    let all: BTreeSet<PathBuf> = targets.flat_map(between).collect();
    // Nothing can be renamed inside a protected folder.
    let mut all: Vec<PathBuf> =
        all.into_iter().filter(|path| !inside_any(path, protected)).collect();
    all.sort_by_key(|path| path.components().count());
    all
}

fn inside_any(path: &Path, folders: &[PathBuf]) -> bool {
    folders.iter().any(|folder| path.starts_with(folder))
}

/// Files there are kernel settings and devices.
fn is_kernel_folder(path: &Path) -> bool {
    let theirs = ["/proc", "/sys", "/dev"].iter().any(|folder| path.starts_with(folder));
    theirs && !path.starts_with(SHARED_MEMORY)
}

fn is_all(path: &Path) -> bool {
    path.parent().is_none()
}
