//! Children that this program did not start itself: it adopted them when their parent died.
//!
//! They are named by their pid. That is safe for as long as this program alone reaps them: until
//! then the number is no other's.

use std::fs;

use rustix::io::Errno;

use crate::child::{PEEK, Status, Usage, wait_for};

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
    let text = fs::read_to_string(format!("/proc/{pid}/stat"));
    let text = text.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    // Field 9, counted from 1; the second may contain anything.
    let fields = text.rsplit_once(')').map_or("", |(_, fields)| fields);
    let flags = fields.split_ascii_whitespace().nth(6).and_then(|flags| flags.parse::<u64>().ok());
    Ok(flags.ok_or(Errno::IO)? & NOT_YET == 0)
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
