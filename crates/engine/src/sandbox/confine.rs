//! Translates a plan into the kernel's terms.

use std::ffi::{CString, OsStr};
use std::fs::DirBuilder;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use lastbyte_sys::Errno;
use lastbyte_sys::confine::{
    Confinement, FilePlace, Filter, KeptFolder, MetadataChanges, Mounts, Namespaces, RootUser,
    Ruleset,
};
use lastbyte_sys::resolve::{Unresolved, resolve};

use super::Sandbox;
use super::enforcement::{Enforcement, Missing, Probed};
use super::error::SandboxError;
use super::plan::{PathPlan, Places};
use super::root_record::RootRecord;
use super::startup_files::Absent;
use crate::launch::plan::Warning;
use crate::settings::{Settings, own_homes};

/// How an engine enforces policies.
#[derive(Debug)]
pub(crate) struct Sandboxes {
    settings: Settings,
    homes: Vec<PathBuf>,
    /// Probed when the first confined command starts.
    found: OnceLock<Probed>,
    /// The server's own folders.
    hidden: Vec<PathBuf>,
    own: OwnFolders,
    written: RootRecord,
}

/// Folders that commands see in place of others; created when first needed.
#[derive(Debug)]
struct OwnFolders {
    /// In place of what is hidden.
    empty: PathBuf,
    /// In place of the shared memory of all programs on the machine.
    shared_memory: PathBuf,
}

/// What a confined command is started with.
#[derive(Debug)]
pub(crate) struct Confined {
    pub(crate) confinement: Arc<Confinement>,
    pub(crate) enforcement: Enforcement,
    pub(crate) warnings: Vec<Warning>,
}

impl Sandboxes {
    pub(crate) fn new(settings: &Settings) -> Self {
        let own = [settings.state.clone()].into_iter();
        Self {
            settings: settings.clone(),
            homes: settings.homes.clone().unwrap_or_else(own_homes),
            found: OnceLock::new(),
            hidden: own.chain(settings.hidden.iter().cloned()).collect(),
            own: OwnFolders::new(&settings.state),
            written: RootRecord::new(settings.sandbox_roots.clone()),
        }
    }

    /// What to start the command with; `None` for a policy without restrictions.
    pub(crate) fn confinement(
        &self,
        sandbox: &Sandbox,
        cwd: &Path,
        tmpdir: Option<&OsStr>,
    ) -> Result<Option<Confined>, SandboxError> {
        if !sandbox.confines() {
            return Ok(None);
        }
        let written = self.written.folders().map_err(|error| self.unrecorded(&error))?;
        let Self { hidden, homes, settings, .. } = self;
        let Settings { protected, config_home, .. } = settings;
        let config_home = config_home.as_deref();
        let places =
            Places { cwd, tmpdir, hidden, protected, homes, config_home, written: &written };
        let Some(mut plan) = PathPlan::new(sandbox, places, resolve)? else { return Ok(None) };
        let found = self.find().map_err(SandboxError::NotEnforceable)?;
        match (found.enforcement, plan.needs()) {
            (Enforcement::Landlock, Some(needs)) => {
                return Err(SandboxError::NeedsNamespaces { needs });
            }
            (Enforcement::Landlock, None) => {}
            (Enforcement::Mounts | Enforcement::UserMounts, _) => self.own.make()?,
        }
        let mut warnings = Vec::new();
        let created = make_absent(&plan.absent)?;
        if !created.is_empty() {
            warnings.push(Warning::Created(created));
            if let Some(complete) = PathPlan::new(sandbox, places, resolve)? {
                plan = complete;
            }
        }
        warnings.extend((found.landlock < SCOPES).then_some(Warning::Signals));
        let confinement = Arc::new(plan.confinement(found, &self.own)?);
        // Record this before the command can change anything there.
        let roots = plan.roots.iter().map(|root| (root.as_path(), plan.files[root]));
        let added = self.written.add(&roots.collect::<Vec<_>>(), SystemTime::now());
        added.map_err(|error| self.unrecorded(&error))?;
        Ok(Some(Confined { confinement, enforcement: found.enforcement, warnings }))
    }

    fn unrecorded(&self, error: &io::Error) -> SandboxError {
        let path = self.written.file.clone();
        match (Errno::from_io_error(error).unwrap_or(Errno::IO), resolve(&path)) {
            (Errno::ACCESS, Err(Unresolved { errno: Errno::ACCESS, at: Some(at) })) => {
                SandboxError::OwnUnreachable { path, closed: at.path }
            }
            (errno, _) => SandboxError::Record { path, errno },
        }
    }

    /// Keeps what was found, but not a failure: it may have been a temporary shortage.
    fn find(&self) -> Result<&Probed, Missing> {
        match self.found.get() {
            Some(found) => Ok(found),
            None => {
                let found = self.settings.enforcement.find(self.settings.mechanism)?;
                Ok(self.found.get_or_init(|| found))
            }
        }
    }
}

impl OwnFolders {
    fn new(state: &Path) -> Self {
        Self { empty: state.join("empty"), shared_memory: state.join("shm") }
    }

    fn make(&self) -> Result<(), SandboxError> {
        for (path, mode) in [(&self.empty, 0o500), (&self.shared_memory, 0o700)] {
            match DirBuilder::new().mode(mode).create(path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
                    return Err(SandboxError::Hide { path: path.clone(), errno });
                }
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    fn shared_memory(&self) -> Result<FilePlace, SandboxError> {
        let path = &self.shared_memory;
        let fault = |Unresolved { errno, .. }| SandboxError::Hide { path: path.clone(), errno };
        let found = resolve(path).map_err(fault)?;
        Ok(FilePlace { path: c_path(&found.path), file: found.file })
    }
}

/// Returns what was created. If this user may not create it, neither may a command, unless it could change
/// the mode of the folder first.
fn make_absent(absent: &[Absent]) -> Result<Vec<PathBuf>, SandboxError> {
    let mut made = Vec::new();
    for one in absent {
        match one.make() {
            Ok(()) => made.push(one.path.clone()),
            Err(Errno::PERM | Errno::ROFS) => {}
            Err(Errno::ACCESS) if !one.is_in_own_folder() => {}
            Err(errno) => return Err(SandboxError::Protect { path: one.path.clone(), errno }),
        }
    }
    Ok(made)
}

/// The version of Landlock that confines signals.
const SCOPES: u32 = 6;

/// The restrictions of every policy: nothing to write and no network.
pub(super) fn bare_confinement(found: &Probed) -> Confinement {
    let own = OwnFolders::new(Path::new("/"));
    PathPlan::default().confinement(found, &own).expect("nothing has to be found")
}

impl PathPlan {
    fn confinement(&self, found: &Probed, own: &OwnFolders) -> Result<Confinement, SandboxError> {
        let namespaces = match found.enforcement {
            Enforcement::Mounts => Some(Namespaces::Mount),
            Enforcement::UserMounts => Some(Namespaces::for_own_user()),
            Enforcement::Landlock => None,
        };
        let (metadata, root) = match &namespaces {
            Some(_) => (MetadataChanges::Free, RootUser::Disarm),
            None => (MetadataChanges::Barred, RootUser::for_own_children()),
        };
        let mounts = namespaces.map(|namespaces| self.mounts(own, namespaces)).transpose()?;
        let folders = match &mounts {
            Some(mounts) => mounts.kept.iter().map(|kept| kept.from.clone()).collect(),
            None => self.places(&self.roots),
        };
        let (devices, readable, network) = (found.devices.clone(), found.readable, self.network);
        let ruleset = Ruleset { folders, devices, readable, network };
        let cwd = self.cwd.as_deref().map(|cwd| self.place(cwd));
        Ok(Confinement { mounts, ruleset, cwd, filter: Filter::get(network, metadata), root })
    }

    fn mounts(&self, own: &OwnFolders, namespaces: Namespaces) -> Result<Mounts, SandboxError> {
        let roots = self.roots.iter().map(|root| self.place(root));
        let mut kept: Vec<KeptFolder> =
            roots.map(|root| KeptFolder { from: root.clone(), to: root }).collect();
        if let Some(path) = &self.shared_memory {
            kept.push(KeptFolder { from: own.shared_memory()?, to: self.place(path) });
        }
        Ok(Mounts {
            namespaces,
            kept,
            immovable: self.places(&self.immovable),
            protected: self.places(&self.protected),
            hidden: self.places(&self.hidden),
            empty: c_path(&own.empty),
        })
    }

    fn places(&self, paths: &[PathBuf]) -> Vec<FilePlace> {
        paths.iter().map(|path| self.place(path)).collect()
    }

    fn place(&self, path: &Path) -> FilePlace {
        FilePlace { path: c_path(path), file: self.files[path] }
    }
}

fn c_path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).expect("a path that was found has no NUL")
}
