//! Orphans that a subreaper adopts, and their zombies.
//!
//! For programs of which every child is either a leader or an orphan; a library must leave the
//! children of its program alone.

use std::fs;

use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, getpid, set_child_subreaper, waitid};

use crate::{leaders, procfs};

/// From now on whoever loses its parent below this program becomes its child.
pub fn adopt() -> Result<(), Errno> {
    set_child_subreaper(Some(getpid()))
}

/// Ends the zombies of adopted orphans, and tells how many. A leader's status is never taken.
pub fn reap() -> usize {
    children().into_iter().filter(|pid| reap_if_orphan(*pid)).count()
}

fn reap_if_orphan(pid: i32) -> bool {
    let Some(child) = Pid::from_raw(pid) else { return false };
    let exited = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    let is_zombie = |options| matches!(waitid(WaitId::Pid(child), options), Ok(Some(_)));
    // Judged only once it is seen to have exited: by then a leader has announced itself. The first
    // question spares the others the call.
    !leaders::is_leader(pid)
        && is_zombie(exited | WaitIdOptions::NOWAIT)
        && !leaders::is_leader(pid)
        && is_zombie(exited)
}

/// Our children, zombies included. One that is missed because others went away meanwhile is found
/// by the next look, which its own end or theirs brings about.
fn children() -> Vec<i32> {
    let own = getpid().as_raw_nonzero().get();
    by_thread().unwrap_or_else(|| {
        // A kernel without CONFIG_PROC_CHILDREN.
        let all = procfs::all().into_iter().flatten();
        all.filter(|stat| stat.parent == own).map(|stat| stat.pid).collect()
    })
}

fn by_thread() -> Option<Vec<i32>> {
    let mut pids = Vec::new();
    for thread in fs::read_dir("/proc/self/task").ok()? {
        let path = thread.ok()?.path().join("children");
        match fs::read_to_string(&path) {
            Ok(text) => {
                pids.extend(text.split_ascii_whitespace().filter_map(|p| p.parse::<i32>().ok()))
            }
            // The thread has ended, or there are no such files at all.
            Err(_) if path.parent().is_some_and(|thread| !thread.exists()) => {}
            Err(_) => return None,
        }
    }
    Some(pids)
}
