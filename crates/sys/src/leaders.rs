//! The leaders of this program that nobody has reaped yet, whichever spawner made them.
//!
//! A program that reaps the orphans it adopts must be able to tell them from leaders, whose
//! status belongs to their owner, and at every instant: a leader may end before its spawner has
//! learnt its pid. So the child itself says who it is, as the first thing it does.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::Pid;

/// The pid of the child that a spawner is making, written by the child.
#[derive(Debug, Default)]
pub(crate) struct Birth(AtomicI32);

/// One spawner's children, from their first instruction until they are on the list.
#[derive(Debug)]
pub(crate) struct Births {
    current: Arc<Birth>,
}

/// How often each pid is a leader's: twice for the moment in which one was reaped and its number
/// was given to the next.
static LEADERS: Mutex<Leaders> = Mutex::new(Leaders { births: Vec::new(), unreaped: None });

struct Leaders {
    births: Vec<Arc<Birth>>,
    unreaped: Option<HashMap<i32, usize>>,
}

impl Birth {
    /// Runs in the child: one store, no allocation.
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

    /// Where the next child announces itself.
    pub(crate) fn next(&self) -> &Birth {
        self.current.0.store(0, Ordering::SeqCst);
        &self.current
    }

    /// Whether the child has run at all.
    pub(crate) fn announced(&self, pid: Pid) -> bool {
        self.current.0.load(Ordering::SeqCst) == pid.as_raw_nonzero().get()
    }

    /// The spawner knows it too: from here to its reaping it is on the list.
    pub(crate) fn born(&self, pid: Pid) {
        let mut leaders = leaders();
        *leaders.unreaped().entry(pid.as_raw_nonzero().get()).or_default() += 1;
        self.current.0.store(0, Ordering::SeqCst);
    }
}

impl Drop for Births {
    fn drop(&mut self) {
        leaders().births.retain(|birth| !Arc::ptr_eq(birth, &self.current));
    }
}

/// The leader with this pid was reaped.
pub(crate) fn reaped(pid: Pid) {
    let pid = pid.as_raw_nonzero().get();
    let mut leaders = leaders();
    let unreaped = leaders.unreaped();
    if let Some(count) = unreaped.get_mut(&pid) {
        *count -= 1;
        if *count == 0 {
            unreaped.remove(&pid);
        }
    }
}

/// Whether this child of ours, which has run at least one instruction, is an unreaped leader.
pub(crate) fn is_leader(pid: i32) -> bool {
    let mut leaders = leaders();
    let announced = |birth: &Arc<Birth>| birth.0.load(Ordering::SeqCst) == pid;
    leaders.births.iter().any(announced) || leaders.unreaped().contains_key(&pid)
}

impl Leaders {
    fn unreaped(&mut self) -> &mut HashMap<i32, usize> {
        self.unreaped.get_or_insert_default()
    }
}

fn leaders() -> MutexGuard<'static, Leaders> {
    // Each change is complete in itself.
    LEADERS.lock().unwrap_or_else(PoisonError::into_inner)
}
