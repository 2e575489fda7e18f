//! Orphans that a subreaper adopts, and reaping them.
//!
//! Only for programs whose every child is either a leader or an orphan. A library must not touch
//! the children of its program.

use std::fs;
use std::io;
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, getpid, set_child_subreaper, waitid};

use crate::leaders;
use crate::procfs::{self, pids};

/// Who adopts the orphans of this program's trees: this program, its keeper, or nobody (0).
static ADOPTER: AtomicI32 = AtomicI32::new(0);

/// Makes this program the subreaper: processes below it that lose their parent become its children.
pub fn adopt() -> Result<(), Errno> {
    set_child_subreaper(Some(getpid()))?;
    ADOPTER.store(getpid().as_raw_nonzero().get(), Ordering::Relaxed);
    Ok(())
}

/// The keeper, which started this program, adopts them and reaps them.
pub fn adopted_by(keeper: i32) {
    ADOPTER.store(keeper, Ordering::Relaxed);
}

/// The process that all members of this program's trees descend from, if there is one.
pub fn adopter() -> Option<i32> {
    Some(ADOPTER.load(Ordering::Relaxed)).filter(|pid| *pid != 0)
}

/// Whether orphans are adopted, so that all members of its trees descend from one process.
pub fn adopts() -> bool {
    adopter().is_some()
}

/// Whether a child of this program is an orphan: neither a leader nor about to become one.
///
/// `stat` must describe a child that still exists after this call, see [`procfs::Stat::still_exists`].
pub fn is_orphan(stat: &procfs::Stat) -> bool {
    // A leader leaves our session only after it has announced itself, and no descendant of it can
    // come back.
    !leaders::is_leader(stat.pid) && stat.session != own_session()
}

/// The session of this program as `/proc` shows it. It is 0 if the session began outside our pid
/// namespace, as after `docker exec`, which rustix treats as impossible.
fn own_session() -> i32 {
    // SAFETY: getsid(2) takes a number and accesses no memory of ours; 0 means this process, for
    // which the call cannot fail.
    unsafe { libc::getsid(0) }
}

/// The orphans among the adopter's children, zombies included, newest last. Much faster than listing
/// all processes. It may miss one if others exit meanwhile; the next call finds it.
pub fn adopted() -> io::Result<Vec<i32>> {
    let own = getpid().as_raw_nonzero().get();
    // The kernel reparents orphans to the first thread, which lives as long as the program.
    let adopter = adopter().unwrap_or(own);
    let text = fs::read_to_string(format!("/proc/{adopter}/task/{adopter}/children"))?;
    Ok(pids(&text).filter(|pid| *pid != own && !leaders::is_leader(*pid)).collect())
}

/// Reaps the zombies of adopted orphans and returns how many. It never takes a leader's status.
pub fn reap() -> usize {
    children().into_iter().filter(|pid| reap_if_orphan(*pid)).count()
}

fn reap_if_orphan(pid: i32) -> bool {
    let Some(child) = Pid::from_raw(pid) else { return false };
    let exited = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    let is_zombie = |options| matches!(waitid(WaitId::Pid(child), options), Ok(Some(_)));
    // Decide only after it is seen to have exited: by then a leader has announced itself. The first
    // check only saves a system call.
    !leaders::is_leader(pid)
        && is_zombie(exited | WaitIdOptions::NOWAIT)
        && !leaders::is_leader(pid)
        && is_zombie(exited)
}

/// Our children, zombies included. It may miss one if others exit meanwhile; the next call finds
/// it, and either exit triggers one.
pub fn children() -> Vec<i32> {
    let own = getpid().as_raw_nonzero().get();
    by_thread().unwrap_or_else(|| {
        // The kernel lacks CONFIG_PROC_CHILDREN.
        let all = procfs::all().into_iter().flatten();
        all.filter(|stat| stat.parent == own).map(|stat| stat.pid).collect()
    })
}

fn by_thread() -> Option<Vec<i32>> {
    let mut all = Vec::new();
    for thread in fs::read_dir("/proc/self/task").ok()? {
        let path = thread.ok()?.path().join("children");
        match fs::read_to_string(&path) {
            Ok(text) => all.extend(pids(&text)),
            // Either the thread has ended, or the kernel has no such files.
            Err(_) if path.parent().is_some_and(|thread| !thread.exists()) => {}
            Err(_) => return None,
        }
    }
    Some(all)
}
