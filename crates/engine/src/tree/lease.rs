//! A leaf in the hands of one tree, from before its leader's birth until nobody is left in it.

use std::ffi::CString;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lastbyte_sys::cgroup::{Leaf, State};

use super::leaves::Leaves;
use super::strays::Strays;

/// Once the leaf was given back it belongs to somebody else: every use of it goes through
/// [`Lease::look`], which excludes giving it back meanwhile.
#[derive(Debug)]
pub(crate) struct Lease {
    held: Mutex<Option<Held>>,
    /// Outlives the leaf, as those may who left it.
    strays: Arc<Strays>,
}

#[derive(Debug)]
struct Held {
    leaf: Leaf,
    leaves: Arc<Leaves>,
    watched_by: usize,
}

/// As long as it lives the leaf is not given back. The kernel tells of a change up to 10 ms late,
/// and never if the leaf is removed meanwhile: whoever waits for one would wait in vain.
#[derive(Debug)]
pub(crate) struct Watched(Arc<Lease>);

impl Lease {
    pub(super) fn new(leaves: &Arc<Leaves>) -> io::Result<Self> {
        Ok(Self::of(leaves.take()?, leaves))
    }

    pub(super) fn of(leaf: Leaf, leaves: &Arc<Leaves>) -> Self {
        let held = Held { leaf, leaves: Arc::clone(leaves), watched_by: 0 };
        Self { held: Mutex::new(Some(held)), strays: Arc::clone(&leaves.strays) }
    }

    pub(super) fn strays(&self) -> &Arc<Strays> {
        &self.strays
    }

    pub(super) fn path(&self) -> Option<CString> {
        self.held().as_ref().map(|held| held.leaf.path())
    }

    /// Does something with the leaf; `None` when it was given back, because its tree is empty and
    /// stays so.
    pub(crate) fn look<T>(
        &self,
        look: impl FnOnce(&Leaf) -> io::Result<T>,
    ) -> io::Result<Option<T>> {
        self.held().as_ref().map(|held| look(&held.leaf)).transpose()
    }

    pub(crate) fn watched(self: &Arc<Self>) -> Watched {
        self.held().iter_mut().for_each(|held| held.watched_by += 1);
        Watched(Arc::clone(self))
    }

    /// Gives the leaf back if nobody lives in it. Does not wait: whoever looks at the leaf at this
    /// instant, or watches it, is a stop or a sweep, which give it back themselves.
    pub(super) fn give_back_if_empty(&self) {
        let Ok(mut held) = self.held.try_lock() else { return };
        // Only we put processes into a leaf, so one that was used and is empty stays empty.
        let Some(state) = held.as_ref().filter(|held| held.watched_by == 0).and_then(empty) else {
            return;
        };
        if let Some(Held { leaf, leaves, .. }) = held.take() {
            drop(held);
            leaves.give_back_empty(leaf, state);
        }
    }

    fn held(&self) -> MutexGuard<'_, Option<Held>> {
        // The leaf is taken out in one step or not at all.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The state of a leaf that nobody lives in.
fn empty(held: &Held) -> Option<State> {
    held.leaf.state().ok().filter(|state| !state.populated)
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.0.held().iter_mut().for_each(|held| held.watched_by -= 1);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(Held { leaf, leaves, .. }) = self.held().take() {
            leaves.give_back(leaf);
        }
    }
}
