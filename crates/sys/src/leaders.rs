//! The unreaped leaders of this program, from every spawner.
//!
//! A program that reaps adopted orphans must never take a leader's status, which belongs to the
//! leader's owner. It has to tell them apart at any moment, and a leader may exit before its
//! spawner has learnt its pid. So the child itself announces its pid, as the first thing it does.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::Pid;

/// One spawner's children, from their first instruction until they are in the list: the pid of the
/// child that it is creating, written by the child.
#[derive(Debug)]
pub(crate) struct Births(Arc<AtomicI32>);

/// Counts the leaders per pid: briefly two, when one was reaped and its pid was already reused.
static LEADERS: Mutex<Leaders> =
    Mutex::new(Leaders { births: Vec::new(), unreaped: BTreeMap::new() });

struct Leaders {
    births: Vec<Arc<AtomicI32>>,
    unreaped: BTreeMap<i32, usize>,
}

impl Births {
    pub(crate) fn begin() -> Self {
        let current = Arc::new(AtomicI32::new(0));
        leaders().births.push(Arc::clone(&current));
        Self(current)
    }

    /// Where the next child stores its pid as the first thing it does.
    pub(crate) fn next(&self) -> &AtomicI32 {
        self.0.store(0, Ordering::SeqCst);
        &self.0
    }

    /// Whether the child has started to run.
    pub(crate) fn announced(&self, pid: Pid) -> bool {
        self.0.load(Ordering::SeqCst) == pid.as_raw_nonzero().get()
    }

    /// Records the child once the spawner knows its pid, until it is reaped.
    pub(crate) fn born(&self, pid: Pid) {
        let mut leaders = leaders();
        *leaders.unreaped.entry(pid.as_raw_nonzero().get()).or_default() += 1;
        self.0.store(0, Ordering::SeqCst);
    }
}

impl Drop for Births {
    fn drop(&mut self) {
        leaders().births.retain(|birth| !Arc::ptr_eq(birth, &self.0));
    }
}

/// Adds a leader that an earlier worker cloned.
pub(crate) fn taken_over(pid: Pid) {
    *leaders().unreaped.entry(pid.as_raw_nonzero().get()).or_default() += 1;
}

/// Removes a leader that was reaped.
pub(crate) fn reaped(pid: Pid) {
    let pid = pid.as_raw_nonzero().get();
    let mut leaders = leaders();
    if let Some(count) = leaders.unreaped.get_mut(&pid) {
        *count -= 1;
        if *count == 0 {
            leaders.unreaped.remove(&pid);
        }
    }
}

/// Whether this child is an unreaped leader. It must have run at least one instruction.
pub(crate) fn is_leader(pid: i32) -> bool {
    let leaders = leaders();
    leaders.births.iter().any(|birth| birth.load(Ordering::SeqCst) == pid)
        || leaders.unreaped.contains_key(&pid)
}

fn leaders() -> MutexGuard<'static, Leaders> {
    // Every update is complete in itself, so a poisoned lock is usable.
    LEADERS.lock().unwrap_or_else(PoisonError::into_inner)
}
