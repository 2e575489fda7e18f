//! A plan in the kernel's terms.

use std::ffi::{CString, OsStr};
use std::fs::DirBuilder;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use lastbyte_sys::Errno;
use lastbyte_sys::confine::{
    Confinement, Filter, Kept, Mounts, Namespaces, Readable, Root, Ruleset, Traffic, Upkeep, marked,
};
use lastbyte_sys::spawn::Mechanism;

use super::enforcement::{Enforcement, EnforcementChoice, Found, Missing};
use super::error::SandboxError;
use super::plan::{Places, Plan, Resolved};
use super::{Network, Sandbox};
use crate::plan::Warning;

/// What an engine knows of enforcing policies.
#[derive(Debug)]
pub(crate) struct Sandboxes {
    choice: EnforcementChoice,
    mechanism: Mechanism,
    /// Looked for when the first confined command is started.
    found: OnceLock<Found>,
    /// The server's own folders.
    hidden: Vec<PathBuf>,
    own: OwnFolders,
}

/// Folders that commands see in the place of others; made when they are first needed.
#[derive(Debug)]
struct OwnFolders {
    /// In the place of what is hidden.
    empty: PathBuf,
    /// In the place of the memory that all programs of the machine share.
    shared_memory: PathBuf,
}

/// What a command is started with.
#[derive(Debug)]
pub(crate) struct Confined {
    pub(crate) confinement: Arc<Confinement>,
    pub(crate) warning: Option<Warning>,
}

/// Whether this process belongs to a confined command, of this engine or any other. It cannot
/// shed what this looks at: not by another session, parent or environment. One that is gone, or
/// cannot be looked at, counts as confined.
pub fn confined(pid: i32) -> bool {
    marked(pid).unwrap_or(true)
}

impl Sandboxes {
    pub(crate) fn new(
        choice: EnforcementChoice,
        mechanism: Mechanism,
        state: &Path,
        hidden: &[PathBuf],
    ) -> Self {
        let hidden = [state.to_owned()].into_iter().chain(hidden.iter().cloned()).collect();
        Self { choice, mechanism, found: OnceLock::new(), hidden, own: OwnFolders::of(state) }
    }

    /// What the command is to be started with; `None` for a policy that keeps nothing from it.
    pub(crate) fn confinement(
        &self,
        sandbox: &Sandbox,
        cwd: &Path,
        tmpdir: Option<&OsStr>,
    ) -> Result<Option<Confined>, SandboxError> {
        let places = Places { cwd, tmpdir, hidden: &self.hidden };
        let Some(plan) = Plan::new(sandbox, places, resolve)? else { return Ok(None) };
        let found = self.find().map_err(SandboxError::NotEnforceable)?;
        match (found.enforcement, plan.needs()) {
            (Enforcement::Landlock, Some(needs)) => {
                return Err(SandboxError::NeedsNamespaces { needs });
            }
            (Enforcement::Landlock, None) => {}
            (Enforcement::Mounts | Enforcement::UserMounts, _) => self.own.make()?,
        }
        let warning = (found.landlock < SCOPES).then_some(Warning::Signals);
        let confinement = Arc::new(confinement(&plan, found, &self.own));
        Ok(Some(Confined { confinement, warning }))
    }
}

impl Sandboxes {
    /// What was found is kept. A failure is not: there may have been too little of something.
    fn find(&self) -> Result<&Found, Missing> {
        match self.found.get() {
            Some(found) => Ok(found),
            None => {
                let found = self.choice.find(self.mechanism)?;
                Ok(self.found.get_or_init(|| found))
            }
        }
    }
}

impl OwnFolders {
    fn of(state: &Path) -> Self {
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
}

/// The version of Landlock that keeps signals inside.
const SCOPES: u32 = 6;

fn resolve(path: &Path) -> Result<Resolved, Errno> {
    let look = || {
        let path = path.canonicalize()?;
        let folder = path.metadata()?.is_dir();
        Ok(Resolved { path, folder })
    };
    look().map_err(|error: io::Error| Errno::from_io_error(&error).unwrap_or(Errno::INVAL))
}

/// With nothing to write and nobody to reach: what every policy needs.
pub(super) fn bare_confinement(found: &Found) -> Confinement {
    let plan = Plan {
        network: Network::Off,
        roots: vec![],
        protected: vec![],
        hidden: vec![],
        steadied: vec![],
        shared_memory: None,
    };
    confinement(&plan, found, &OwnFolders::of(Path::new("/")))
}

fn confinement(plan: &Plan, found: &Found, own: &OwnFolders) -> Confinement {
    let traffic = match plan.network {
        Network::On => Traffic::Free,
        Network::Off => Traffic::Barred,
    };
    let (namespaces, upkeep, root) = match found.enforcement {
        Enforcement::Mounts => (Some(Namespaces::Mount), Upkeep::Free, Root::Disarm),
        Enforcement::UserMounts => (Some(Namespaces::of_own_user()), Upkeep::Free, Root::Disarm),
        Enforcement::Landlock => (None, Upkeep::Barred, Root::of_own_children()),
    };
    let mounts = namespaces.map(|namespaces| mounts(plan, own, namespaces));
    let folders = match &mounts {
        Some(mounts) => mounts.kept.iter().map(|kept| kept.from.clone()).collect(),
        None => c_paths(&plan.roots),
    };
    let (devices, readable) = (found.devices.clone(), readable(found));
    let ruleset = Ruleset { folders, devices, readable, traffic };
    Confinement { mounts, ruleset, filter: Filter::of(traffic, upkeep), root }
}

fn mounts(plan: &Plan, own: &OwnFolders, namespaces: Namespaces) -> Mounts {
    let roots = plan.roots.iter().map(|root| Kept { from: c_path(root), to: c_path(root) });
    let shared_memory = plan
        .shared_memory
        .as_deref()
        .map(|path| Kept { from: c_path(&own.shared_memory), to: c_path(path) });
    Mounts {
        namespaces,
        kept: roots.chain(shared_memory).collect(),
        steadied: c_paths(&plan.steadied),
        protected: c_paths(&plan.protected),
        hidden: c_paths(&plan.hidden),
        empty: c_path(&own.empty),
    }
}

/// To user 0 a disk is a file that it can read, with all that is hidden on it.
fn readable(found: &Found) -> Readable {
    match found.reads_disks {
        true => Readable::NoDevice,
        false => Readable::Everything,
    }
}

fn c_paths(paths: &[PathBuf]) -> Vec<CString> {
    paths.iter().map(|path| c_path(path)).collect()
}

fn c_path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).expect("a path that was found has no NUL")
}
