//! A cgroup leased to one tree, from before its leader starts until no process is left in it.

use std::ffi::CString;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lastbyte_sys::cgroup::{Cgroup, CgroupLimits, CgroupState, Controller};

use super::cgroup_pool::CgroupPool;

/// Once the cgroup is given back, another tree may use it. So every use goes through
/// [`Lease::with_cgroup`], which keeps it from being given back meanwhile.
#[derive(Debug)]
pub(crate) struct Lease {
    held: Mutex<Option<Held>>,
}

#[derive(Debug)]
struct Held {
    cgroup: Cgroup,
    pool: Arc<CgroupPool>,
    watched_by: usize,
}

/// The cgroup is not given back while one of these exists. The kernel reports a change up to 10 ms
/// late, and never if the cgroup is removed meanwhile, so a waiter would wait in vain.
#[derive(Debug)]
pub(crate) struct Watched(Arc<Lease>);

impl Lease {
    pub(super) fn new(pool: &Arc<CgroupPool>) -> io::Result<Self> {
        Ok(Self::from_cgroup(pool.take()?, pool))
    }

    /// As [`Lease::new`], with these limits; tells which controllers enforce one.
    pub(super) fn limited(
        pool: &Arc<CgroupPool>,
        limits: CgroupLimits,
    ) -> io::Result<(Self, Vec<Controller>)> {
        let (cgroup, controllers) = pool.take_limited(limits)?;
        Ok((Self::from_cgroup(cgroup, pool), controllers))
    }

    pub(super) fn from_cgroup(cgroup: Cgroup, pool: &Arc<CgroupPool>) -> Self {
        let held = Held { cgroup, pool: Arc::clone(pool), watched_by: 0 };
        Self { held: Mutex::new(Some(held)) }
    }

    pub(super) fn path(&self) -> Option<CString> {
        self.held().as_ref().map(|held| held.cgroup.path())
    }

    /// Calls a function with the cgroup; `None` if it was given back, because its tree is empty and
    /// stays so.
    pub(crate) fn with_cgroup<T>(
        &self,
        call: impl FnOnce(&Cgroup) -> io::Result<T>,
    ) -> io::Result<Option<T>> {
        self.held().as_ref().map(|held| call(&held.cgroup)).transpose()
    }

    pub(crate) fn watched(self: &Arc<Self>) -> Watched {
        self.held().iter_mut().for_each(|held| held.watched_by += 1);
        Watched(Arc::clone(self))
    }

    /// Gives the cgroup back if it is empty. Does not wait: only a stop or a sweep uses or watches
    /// the cgroup at this point, and they give it back themselves.
    pub(super) fn give_back_if_empty(&self) {
        let Ok(mut held) = self.held.try_lock() else { return };
        // Only we put processes into a cgroup, so a used cgroup that is empty stays empty.
        let Some(state) = held.as_ref().filter(|held| held.watched_by == 0).and_then(empty) else {
            return;
        };
        if let Some(Held { cgroup, pool, .. }) = held.take() {
            drop(held);
            pool.give_back_empty(cgroup, state);
        }
    }

    fn held(&self) -> MutexGuard<'_, Option<Held>> {
        // The cgroup is taken out in one step, so a poisoned lock is usable.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The state of a cgroup if it is empty.
fn empty(held: &Held) -> Option<CgroupState> {
    held.cgroup.state().ok().filter(|state| !state.populated)
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.0.held().iter_mut().for_each(|held| held.watched_by -= 1);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(Held { cgroup, pool, .. }) = self.held().take() {
            pool.give_back(cgroup);
        }
    }
}
