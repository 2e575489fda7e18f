//! The unreaped leaders of this program, from every spawner.
//!
//! A program that reaps adopted orphans must never take a leader's status, which belongs to the
//! leader's owner. It has to tell them apart at any moment, and a leader may exit before its
//! spawner has learnt its pid. So the child itself announces its pid, as the first thing it does.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::Pid;

/// The pid of the child that a spawner is creating, written by the child.
#[derive(Debug, Default)]
pub(crate) struct Birth(AtomicI32);

/// One spawner's children, from their first instruction until they are in the list.
#[derive(Debug)]
pub(crate) struct Births {
    current: Arc<Birth>,
}

/// Counts the leaders per pid: briefly two, when one was reaped and its pid was already reused.
static LEADERS: Mutex<Leaders> =
    Mutex::new(Leaders { births: Vec::new(), unreaped: BTreeMap::new() });

struct Leaders {
    births: Vec<Arc<Birth>>,
    unreaped: BTreeMap<i32, usize>,
}

impl Birth {
    /// Runs in the child, so it only stores and does not allocate.
    pub(crate) fn announce(&self, pid: isize) {
        self.0.store(pid as i32, Ordering::SeqCst);
    }
}

impl Births {
    pub(crate) fn begin() -> Self {
        let current = Arc::new(Birth::default());
        leaders().births.push(Arc::clone(&current));
        Self { current }
    }

    /// The slot in which the next child announces itself.
    pub(crate) fn next(&self) -> &Birth {
        self.current.0.store(0, Ordering::SeqCst);
        &self.current
    }

    /// Whether the child has started to run.
    pub(crate) fn announced(&self, pid: Pid) -> bool {
        self.current.0.load(Ordering::SeqCst) == pid.as_raw_nonzero().get()
    }

    /// Records the child once the spawner knows its pid, until it is reaped.
    pub(crate) fn born(&self, pid: Pid) {
        let mut leaders = leaders();
        *leaders.unreaped.entry(pid.as_raw_nonzero().get()).or_default() += 1;
        self.current.0.store(0, Ordering::SeqCst);
    }
}

impl Drop for Births {
    fn drop(&mut self) {
        leaders().births.retain(|birth| !Arc::ptr_eq(birth, &self.current));
    }
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
    let announced = |birth: &Arc<Birth>| birth.0.load(Ordering::SeqCst) == pid;
    leaders.births.iter().any(announced) || leaders.unreaped.contains_key(&pid)
}

fn leaders() -> MutexGuard<'static, Leaders> {
    // Every update is complete in itself, so a poisoned lock is usable.
    LEADERS.lock().unwrap_or_else(PoisonError::into_inner)
}
