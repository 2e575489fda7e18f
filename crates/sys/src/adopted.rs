//! Children that this program did not start itself: it adopted them when their parent died.
//!
//! They are named by their pid. That is safe for as long as this program alone reaps them: until
//! then the number is no other's.

use rustix::io::Errno;

use crate::child::{PEEK, Status, Usage, wait_for};
use crate::procfs;

/// How a child ended, if it has. It stays a zombie. `ECHILD` if it is no child of ours.
pub fn peek(pid: i32) -> Result<Option<(Status, Usage)>, Errno> {
    wait_for(by_pid(pid)?, PEEK)
}

/// The same, and removes the zombie.
pub fn reap(pid: i32) -> Result<Option<(Status, Usage)>, Errno> {
    wait_for(by_pid(pid)?, libc::WEXITED | libc::WNOHANG)
}

fn by_pid(pid: i32) -> Result<(usize, usize), Errno> {
    let id = usize::try_from(pid).ok().filter(|pid| *pid > 0).ok_or(Errno::CHILD)?;
    Ok((libc::P_PID as usize, id))
}

/// Whether a process has executed a program since it was cloned.
pub fn has_executed(pid: i32) -> Result<bool, Errno> {
    /// `PF_FORKNOEXEC` of linux/sched.h.
    const NOT_YET: u64 = 0x40;
    let stat = procfs::read_stat(pid);
    let stat = stat.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    Ok(stat.flags & NOT_YET == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_child_has_no_status() {
        assert_eq!(peek(1).err(), Some(Errno::CHILD));
        assert_eq!(reap(-1).err(), Some(Errno::CHILD));
        assert_eq!(peek(0).err(), Some(Errno::CHILD));
    }

    #[test]
    fn this_program_has_been_executed() {
        assert_eq!(has_executed(std::process::id().cast_signed()), Ok(true));
        assert_eq!(has_executed(i32::MAX), Err(Errno::NOENT));
    }
}
