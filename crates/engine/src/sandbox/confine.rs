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
    Confinement, Filter, Namespaces, Root, Ruleset, Traffic, Upkeep, View, marked,
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
    found: OnceLock<Result<Found, Missing>>,
    /// The server's own folders.
    hidden: Vec<PathBuf>,
    /// What they look like to a command; made when it is first needed.
    empty: PathBuf,
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
        Self { choice, mechanism, found: OnceLock::new(), hidden, empty: state.join("empty") }
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
        let found = self.found.get_or_init(|| self.choice.find(self.mechanism));
        let found = found.as_ref().map_err(|missing| SandboxError::NotEnforceable(*missing))?;
        match (found.enforcement, plan.needs()) {
            (Enforcement::Landlock, Some(needs)) => {
                return Err(SandboxError::NeedsNamespaces { needs });
            }
            (Enforcement::Landlock, None) => {}
            (Enforcement::Mounts | Enforcement::UserMounts, _) => self.make_empty()?,
        }
        let warning = (found.landlock < SCOPES).then_some(Warning::Signals);
        let confinement = Arc::new(confinement(&plan, found, &self.empty));
        Ok(Some(Confined { confinement, warning }))
    }

    fn make_empty(&self) -> Result<(), SandboxError> {
        match DirBuilder::new().mode(0o500).create(&self.empty) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
                Err(SandboxError::Hide { path: self.empty.clone(), errno })
            }
            Ok(()) | Err(_) => Ok(()),
        }
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
        scratch: None,
    };
    confinement(&plan, found, Path::new("/"))
}

fn confinement(plan: &Plan, found: &Found, empty: &Path) -> Confinement {
    let traffic = match plan.network {
        Network::On => Traffic::Free,
        Network::Off => Traffic::Barred,
    };
    let (namespaces, upkeep, root) = match found.enforcement {
        Enforcement::Mounts => (Some(Namespaces::Mounts), Upkeep::Free, Root::Disarm),
        Enforcement::UserMounts => (Some(Namespaces::of_own_user()), Upkeep::Free, Root::Disarm),
        Enforcement::Landlock => (None, Upkeep::Barred, Root::of_own_children()),
    };
    let view = namespaces.map(|namespaces| view(plan, found, empty, namespaces));
    let mut folders = c_paths(&plan.roots);
    if view.as_ref().is_some_and(|view| view.scratch.is_some()) {
        // A rule would name the file that the scratch lies over. The mounts see to the rest of
        // this folder: nothing in it can be made, and no other device be opened.
        folders.push(c"/dev".into());
    }
    let ruleset = Ruleset { folders, devices: found.devices.clone(), traffic };
    Confinement { view, ruleset, filter: Filter::of(traffic, upkeep), root }
}

fn view(plan: &Plan, found: &Found, empty: &Path, namespaces: Namespaces) -> View {
    let in_root = |device: &&CString| {
        let path = Path::new(OsStr::from_bytes(device.to_bytes()));
        plan.roots.iter().any(|root| path.starts_with(root))
    };
    let devices = found.devices.iter().filter(|device| !in_root(device)).cloned();
    View {
        namespaces,
        kept: c_paths(&plan.roots).into_iter().chain(devices).collect(),
        steadied: c_paths(&plan.steadied),
        protected: c_paths(&plan.protected),
        hidden: c_paths(&plan.hidden),
        empty: c_path(empty),
        scratch: plan.scratch.as_deref().map(c_path),
    }
}

fn c_paths(paths: &[PathBuf]) -> Vec<CString> {
    paths.iter().map(|path| c_path(path)).collect()
}

fn c_path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).expect("a path that was found has no NUL")
}
