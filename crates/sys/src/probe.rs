//! Probes for what this kernel and machine support.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::Path;

use rustix::io::Errno;
use rustix::process::{PidfdFlags, Resource, geteuid, getpid, getrlimit, pidfd_open};

use crate::file::punch_hole;
use crate::pipe::{pipe, splice_into_file};
use crate::raw::{check, syscall};
use crate::spawn::try_clone;

/// The kernel release, like `6.18.2`.
pub fn kernel() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

/// Whether pidfds work. The engine cannot work without them.
pub fn pidfd() -> Result<(), Errno> {
    pidfd_open(getpid(), PidfdFlags::empty()).map(drop)
}

/// Whether `clone3` works. A container's seccomp filter may refuse it.
pub fn clone3() -> Result<(), Errno> {
    try_clone(0, None).map(drop)
}

/// Whether a pidfd still reports the exit status of a process that something else reaped.
pub fn exit_status_by_pidfd() -> bool {
    try_clone(0, None).is_ok_and(|pidfd| crate::child::status_from_pidfd(pidfd.as_fd()).is_ok())
}

/// The version of the Landlock ABI; `None` without Landlock.
pub fn landlock_abi() -> Option<u32> {
    const VERSION: usize = 1;
    // SAFETY: with this flag the call takes no attributes: a null pointer and a size of 0.
    let version = check(unsafe { syscall(libc::SYS_landlock_create_ruleset, [0, 0, VERSION]) });
    version.ok().and_then(|version| version.try_into().ok())
}

/// Whether this user may create user and mount namespaces.
pub fn namespaces() -> Result<(), Errno> {
    try_clone(libc::CLONE_NEWUSER | libc::CLONE_NEWNS, None).map(drop)
}

/// Whether pipes can be spliced into files in this folder.
pub fn splice(folder: &Path) -> io::Result<()> {
    let (read, write) = pipe()?;
    File::from(write).write_all(b"x")?;
    let file = scratch_file(folder)?;
    splice_into_file(&read, &file, 0, 1)?;
    Ok(())
}

/// Whether holes can be punched into files in this folder.
pub fn punch(folder: &Path) -> io::Result<()> {
    let file = scratch_file(folder)?;
    file.set_len(16 * 4096)?;
    Ok(punch_hole(&file, 4096, 4096)?)
}

/// The maximum pipe size, and how many pages a user may have in pipes before new ones shrink; 0
/// pages means no limit. `None` if the kernel does not say.
pub fn pipe_limits() -> Option<(u64, u64)> {
    let number = |name: &str| fs::read_to_string(name).ok()?.trim().parse().ok();
    Some((number("/proc/sys/fs/pipe-max-size")?, number("/proc/sys/fs/pipe-user-pages-soft")?))
}

/// An unnamed temporary file.
fn scratch_file(folder: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags, open};
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    Ok(File::from(open(folder, flags, Mode::RUSR | Mode::WUSR)?))
}

/// The most processes that there can be at once: of this user (`ulimit -u`, which does not hold for
/// root) or on this machine (`kernel.pid_max`). `None` if neither is known.
pub fn process_limit() -> Option<u64> {
    let user = getrlimit(Resource::Nproc).current.filter(|_| !geteuid().is_root());
    let pid_max = std::fs::read_to_string("/proc/sys/kernel/pid_max").ok();
    let machine = pid_max.and_then(|text| text.trim().parse().ok());
    user.into_iter().chain(machine).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_engine_stands_on_is_there() {
        assert_eq!(pidfd(), Ok(()));
        let folder = tempfile::tempdir().expect("folder");
        splice(folder.path()).expect("splice");
        punch(folder.path()).expect("punch");
        assert!(crate::descriptor_limit::own().is_none_or(|limit| limit > 3));
    }

    #[test]
    fn a_folder_that_is_not_there_offers_nothing() {
        let missing = Path::new("/no/such/folder");
        assert!(splice(missing).is_err() && punch(missing).is_err());
    }

    #[test]
    fn asking_leaves_no_child_behind() {
        _ = namespaces();
        _ = clone3();
        let own = std::process::id();
        assert_eq!(lastbyte_testkit::children_of(own), Vec::<u32>::new());
    }
}
