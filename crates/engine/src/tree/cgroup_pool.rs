//! The cgroups of an engine: free ones, and those in which forgotten trees still live.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use lastbyte_sys::cgroup::{Cgroup, CgroupLimits, CgroupState, Controller, ParentCgroup, sweep};

/// A cgroup costs kernel memory. Above this number an empty one is removed.
const MOST_FREE: usize = 64;

/// Dropping it removes every empty cgroup.
#[derive(Debug)]
pub(crate) struct CgroupPool {
    parent: ParentCgroup,
    /// For trees with limits, made for the first of them; `None` if it cannot be made.
    limited: OnceLock<Option<ParentCgroup>>,
    next: AtomicU64,
    /// Locked only for a push or a pop.
    stock: Mutex<CgroupStock>,
}

#[derive(Debug, Default)]
struct CgroupStock {
    /// Empty, as good as new.
    free: Vec<Cgroup>,
    /// Empty, and to be removed. That takes the kernel longer than anything else about the end of a
    /// tree, so a stop of many must not wait for it.
    unneeded: Vec<Cgroup>,
    /// Of trees without a handle, populated when last checked.
    left: Vec<Cgroup>,
    closed: bool,
}

impl CgroupPool {
    /// Of a parent whose cgroup with the number 0 was used.
    pub(super) fn new(parent: ParentCgroup) -> Self {
        let limited = OnceLock::new();
        Self { parent, limited, next: AtomicU64::new(1), stock: Mutex::default() }
    }

    /// An empty cgroup.
    pub(super) fn take(&self) -> io::Result<Cgroup> {
        let free = self.stock().free.pop();
        free.map_or_else(|| self.parent.cgroup(self.next.fetch_add(1, Ordering::Relaxed)), Ok)
    }

    /// A new cgroup with these limits, and the controllers that enforce one.
    pub(super) fn take_limited(
        &self,
        limits: CgroupLimits,
    ) -> io::Result<(Cgroup, Vec<Controller>)> {
        let limited = self.limited.get_or_init(|| {
            let folder = self.parent.folder().parent()?;
            ParentCgroup::with_controllers(folder, &Controller::ALL).ok()
        });
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let cgroup = limited.as_ref().unwrap_or(&self.parent).cgroup(number)?;
        match cgroup.limit(limits) {
            Ok(controllers) => Ok((cgroup, controllers)),
            Err(error) => {
                self.give_back(cgroup);
                Err(error)
            }
        }
    }

    /// Takes back a cgroup whose tree is gone or has no handle any more.
    pub(super) fn give_back(&self, cgroup: Cgroup) {
        match cgroup.state() {
            Ok(state) if !state.populated => self.give_back_empty(cgroup, state),
            Ok(_) | Err(_) => self.stock().left.push(cgroup),
        }
    }

    /// The same for a cgroup that was just seen to be empty, in this state.
    pub(super) fn give_back_empty(&self, cgroup: Cgroup, state: CgroupState) {
        let reusable = cgroup.end_use(state);
        let mut stock = self.stock();
        if reusable && !stock.closed && stock.free.len() < MOST_FREE {
            stock.free.push(cgroup);
            return;
        }
        stock.unneeded.push(cgroup);
        let closed = stock.closed;
        drop(stock);
        if closed {
            self.remove_unneeded();
            self.remove_parents();
        }
    }

    /// Checks the cgroups that still had processes again, and removes what is not needed. Blocks.
    pub(crate) fn reclaim(&self) {
        let left = std::mem::take(&mut self.stock().left);
        left.into_iter().for_each(|cgroup| self.give_back(cgroup));
        self.remove_unneeded();
    }

    fn remove_unneeded(&self) {
        let mut unneeded = std::mem::take(&mut self.stock().unneeded);
        unneeded.retain(|cgroup| cgroup.remove().is_err());
        self.stock().left.extend(unneeded);
    }

    /// Removes the free cgroups, and from now on every cgroup that is given back.
    pub(super) fn close(&self) {
        {
            let mut stock = self.stock();
            stock.closed = true;
            let free = std::mem::take(&mut stock.free);
            stock.unneeded.extend(free);
        }
        self.reclaim();
        self.remove_parents();
    }

    fn remove_parents(&self) {
        self.parent.remove_if_bare();
        self.limited.get().into_iter().flatten().for_each(ParentCgroup::remove_if_bare);
    }

    /// Removes what engines that are gone have left.
    pub(super) fn remove_leftovers(&self) {
        let folder = self.parent.folder().parent();
        // What stays is in use, or the next start removes it.
        _ = folder.map(sweep);
    }

    fn stock(&self) -> MutexGuard<'_, CgroupStock> {
        // Every update is complete in itself, so a poisoned lock is usable.
        self.stock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CgroupPool {
    fn drop(&mut self) {
        self.close();
    }
}
