//! The leaves of an engine: those that are free, and those that forgotten trees still live in.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lastbyte_sys::cgroup::{Branch, Leaf, State};

use super::strays::Strays;

/// A leaf costs the kernel memory; past this many an empty one is not worth keeping.
const MOST_FREE: usize = 64;

/// Dropped, it removes every leaf that is empty.
#[derive(Debug)]
pub(crate) struct Leaves {
    branch: Branch,
    next: AtomicU64,
    pub(super) strays: Arc<Strays>,
    /// Held for the time of a push or a pop.
    stock: Mutex<Stock>,
}

#[derive(Debug, Default)]
struct Stock {
    /// Empty, as good as new.
    free: Vec<Leaf>,
    /// Of trees that nobody has a handle on any more, with somebody in them when last seen.
    left: Vec<Leaf>,
    closed: bool,
}

impl Leaves {
    pub(super) fn new(folder: &Path) -> io::Result<Self> {
        let branch = Branch::make(folder)?;
        let (strays, stock) = Default::default();
        Ok(Self { branch, next: AtomicU64::new(0), strays, stock })
    }

    /// A leaf with nobody in it.
    pub(super) fn take(&self) -> io::Result<Leaf> {
        let free = self.stock().free.pop();
        match free {
            Some(leaf) => Ok(leaf),
            None => self.branch.leaf(self.next.fetch_add(1, Ordering::Relaxed)),
        }
    }

    /// Takes back a leaf whose tree is gone or has no handle any more.
    pub(super) fn give_back(&self, leaf: Leaf) {
        match leaf.state() {
            Ok(state) if !state.populated => self.give_back_empty(leaf, state),
            Ok(_) | Err(_) => self.stock().left.push(leaf),
        }
    }

    /// The same of one that has just been seen in this state, with nobody in it.
    pub(super) fn give_back_empty(&self, leaf: Leaf, state: State) {
        let Some(leaf) = self.keep(leaf, state) else { return };
        if leaf.remove().is_err() {
            self.stock().left.push(leaf);
        } else if self.stock().closed {
            self.branch.remove_if_bare();
        }
    }

    /// Puts an empty leaf with the free ones, unless it is not wanted there.
    fn keep(&self, leaf: Leaf, state: State) -> Option<Leaf> {
        let reusable = leaf.reusable(state);
        let mut stock = self.stock();
        if !reusable || stock.closed || stock.free.len() >= MOST_FREE {
            return Some(leaf);
        }
        stock.free.push(leaf);
        None
    }

    /// Looks again at the leaves that were left with somebody in them.
    pub(super) fn reclaim(&self) {
        let left = std::mem::take(&mut self.stock().left);
        for leaf in left {
            self.give_back(leaf);
        }
    }

    /// Removes what is free, and from now on what comes back.
    pub(super) fn close(&self) {
        let free = {
            let mut stock = self.stock();
            stock.closed = true;
            std::mem::take(&mut stock.free)
        };
        for leaf in free {
            self.give_back(leaf);
        }
        self.reclaim();
        self.branch.remove_if_bare();
    }

    fn stock(&self) -> MutexGuard<'_, Stock> {
        // Every change is complete in itself.
        self.stock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Leaves {
    fn drop(&mut self) {
        self.close();
    }
}
