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
    Confinement, Filter, Kept, MetadataChanges, Mounts, Namespaces, Place, Root, Ruleset,
};
use lastbyte_sys::resolve::resolve;

use super::Sandbox;
use super::enforcement::{Enforcement, Found, Missing};
use super::error::SandboxError;
use super::plan::{Places, Plan};
use super::root_record::RootRecord;
use super::startup_files::Absent;
use crate::launch::plan::Warning;
use crate::settings::Settings;

/// How an engine enforces policies.
#[derive(Debug)]
pub(crate) struct Sandboxes {
    settings: Settings,
    /// Probed when the first confined command starts.
    found: OnceLock<Found>,
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
    pub(crate) warning: Option<Warning>,
}

impl Sandboxes {
    pub(crate) fn new(settings: &Settings) -> Self {
        let own = [settings.state.clone()].into_iter();
        Self {
            settings: settings.clone(),
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
        let Self { hidden, settings: Settings { protected, homes, .. }, .. } = self;
        let places = Places { cwd, tmpdir, hidden, protected, homes, written: &written };
        let Some(mut plan) = Plan::new(sandbox, places, resolve)? else { return Ok(None) };
        let found = self.find().map_err(SandboxError::NotEnforceable)?;
        match (found.enforcement, plan.needs()) {
            (Enforcement::Landlock, Some(needs)) => {
                return Err(SandboxError::NeedsNamespaces { needs });
            }
            (Enforcement::Landlock, None) => {}
            (Enforcement::Mounts | Enforcement::UserMounts, _) => self.own.make()?,
        }
        if make_absent(&plan.absent)?
            && let Some(complete) = Plan::new(sandbox, places, resolve)?
        {
            plan = complete;
        }
        let warning = (found.landlock < SCOPES).then_some(Warning::Signals);
        let confinement = Arc::new(confinement(&plan, found, &self.own)?);
        // Record this before the command can change anything there.
        let roots = plan.roots.iter().map(|root| (root.as_path(), plan.files[root]));
        let added = self.written.add(&roots.collect::<Vec<_>>(), SystemTime::now());
        added.map_err(|error| self.unrecorded(&error))?;
        Ok(Some(Confined { confinement, warning }))
    }

    fn unrecorded(&self, error: &io::Error) -> SandboxError {
        let errno = Errno::from_io_error(error).unwrap_or(Errno::IO);
        SandboxError::Record { path: self.written.path().to_owned(), errno }
    }

    /// Keeps what was found, but not a failure: it may have been a temporary shortage.
    fn find(&self) -> Result<&Found, Missing> {
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

    fn shared_memory(&self) -> Result<Place, SandboxError> {
        let path = &self.shared_memory;
        let found = resolve(path);
        let found = found.map_err(|errno| SandboxError::Hide { path: path.clone(), errno })?;
        Ok(Place { path: c_path(&found.path), file: found.file })
    }
}

/// Returns whether anything was created. If this user may not create it, neither may a command.
fn make_absent(absent: &[Absent]) -> Result<bool, SandboxError> {
    let mut made = false;
    for one in absent {
        match one.make() {
            Ok(()) => made = true,
            Err(Errno::ACCESS | Errno::PERM | Errno::ROFS) => {}
            Err(errno) => return Err(SandboxError::Protect { path: one.path.clone(), errno }),
        }
    }
    Ok(made)
}

/// The version of Landlock that confines signals.
const SCOPES: u32 = 6;

/// The restrictions of every policy: nothing to write and no network.
pub(super) fn bare_confinement(found: &Found) -> Confinement {
    confinement(&Plan::default(), found, &OwnFolders::new(Path::new("/")))
        .expect("nothing has to be found")
}

fn confinement(plan: &Plan, found: &Found, own: &OwnFolders) -> Result<Confinement, SandboxError> {
    let (namespaces, metadata, root) = match found.enforcement {
        Enforcement::Mounts => (Some(Namespaces::Mount), MetadataChanges::Free, Root::Disarm),
        Enforcement::UserMounts => {
            (Some(Namespaces::for_own_user()), MetadataChanges::Free, Root::Disarm)
        }
        Enforcement::Landlock => (None, MetadataChanges::Barred, Root::for_own_children()),
    };
    let mounts = namespaces.map(|namespaces| mounts(plan, own, namespaces)).transpose()?;
    let folders = match &mounts {
        Some(mounts) => mounts.kept.iter().map(|kept| kept.from.clone()).collect(),
        None => places(plan, &plan.roots),
    };
    let (devices, readable, network) = (found.devices.clone(), found.readable, plan.network);
    let ruleset = Ruleset { folders, devices, readable, network };
    let cwd = plan.cwd.as_deref().map(|cwd| place(plan, cwd));
    Ok(Confinement { mounts, ruleset, cwd, filter: Filter::get(network, metadata), root })
}

fn mounts(plan: &Plan, own: &OwnFolders, namespaces: Namespaces) -> Result<Mounts, SandboxError> {
    let roots = plan.roots.iter().map(|root| place(plan, root));
    let mut kept: Vec<Kept> = roots.map(|root| Kept { from: root.clone(), to: root }).collect();
    if let Some(path) = &plan.shared_memory {
        kept.push(Kept { from: own.shared_memory()?, to: place(plan, path) });
    }
    Ok(Mounts {
        namespaces,
        kept,
        immovable: places(plan, &plan.immovable),
        protected: places(plan, &plan.protected),
        hidden: places(plan, &plan.hidden),
        empty: c_path(&own.empty),
    })
}

fn places(plan: &Plan, paths: &[PathBuf]) -> Vec<Place> {
    paths.iter().map(|path| place(plan, path)).collect()
}

fn place(plan: &Plan, path: &Path) -> Place {
    Place { path: c_path(path), file: plan.files[path] }
}

fn c_path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).expect("a path that was found has no NUL")
}
