//! Leaves of dead runs in which somebody still lives.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::branch::{PREFIX, lock};
use super::leaf::{Leaf, name};

/// The branches of dead runs that were asked for, each locked as long as a leaf of it is held.
#[derive(Debug, Default)]
pub struct Claims {
    branches: HashMap<PathBuf, Option<Arc<OwnedFd>>>,
}

impl Claims {
    /// The leaf at this path, if somebody lives in it and its branch has no owner. A branch that
    /// somebody owns may have the name of one that is gone, but none of its leaves.
    pub fn claim(&mut self, folder: &Path) -> Option<Leaf> {
        let branch =
            folder.parent().filter(|branch| name(branch).starts_with(PREFIX.as_bytes()))?;
        let claim = self.branches.entry(branch.to_owned()).or_insert_with(|| {
            // A branch that cannot be locked is none that can be claimed.
            lock(branch).ok().flatten().map(Arc::new)
        });
        let leaf = Leaf::claimed(folder.to_owned(), Arc::clone(claim.as_ref()?));
        leaf.state().is_ok_and(|state| state.populated).then_some(leaf)
    }
}
