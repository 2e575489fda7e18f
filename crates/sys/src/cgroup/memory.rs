//! Accounts the memory of each tree, so that a kill for lack of memory can be reported.
//!
//! Linux accounts memory below a cgroup only if no process is in the cgroup itself. So the server moves
//! into one beside those of its trees:
//!
//! ```text
//!  our own cgroup ──┬─ lastbyte.server (keeper and worker)
//!                   └─ lastbyte-PID-N ── 0, 1, …
//! ```

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::locate::own_folder;

/// Not a name of a parent.
const SERVER: &str = "lastbyte.server";

/// Accounts the memory of everything below our own cgroup, if that accounts memory itself and no other
/// program is in it. Moves this program, and so what it starts later, if it has to.
pub fn account_memory() -> io::Result<()> {
    let own = own_folder().map_err(io::Error::other)?;
    match account_memory_below(&own) {
        Err(error) if Errno::from_io_error(&error) == Some(Errno::BUSY) => make_way(&own),
        answer => answer,
    }
}

/// Fails if the cgroup itself does not account memory. The root of the hierarchy does not either: it
/// belongs to the machine, and what is written there changes every cgroup below it.
pub(super) fn account_memory_below(folder: &Path) -> io::Result<()> {
    if !accounts_memory(folder) {
        return Err(Errno::NOENT.into());
    }
    write(&folder.join("cgroup.subtree_control"), "+memory")
}

/// Whether the kernel accounts memory in this cgroup. The root of the hierarchy has no such file.
pub(super) fn accounts_memory(folder: &Path) -> bool {
    folder.join("memory.events").exists()
}

/// The cgroup that a server was started in.
pub(super) fn without_server(mut folder: PathBuf) -> PathBuf {
    if folder.ends_with(SERVER) {
        folder.pop();
    }
    folder
}

fn make_way(own: &Path) -> io::Result<()> {
    let server = own.join(SERVER);
    match fs::create_dir(&server) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    enter(&server)?;
    account_memory_below(own).inspect_err(|_| {
        // Another program is in our cgroup. It is left as it was.
        _ = enter(own).and_then(|()| fs::remove_dir(&server));
    })
}

/// Moves this program.
fn enter(folder: &Path) -> io::Result<()> {
    write(&folder.join("cgroup.procs"), "0")
}

/// Not `fs::write`, which would create the file if the folder is not a cgroup.
fn write(file: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(file)?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cgroup_that_accounts_no_memory_such_as_the_root_is_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let control = folder.path().join("cgroup.subtree_control");
        for (file, want) in [("cgroup.procs", ""), ("memory.events", "+memory")] {
            for file in [&control, &folder.path().join(file)] {
                fs::write(file, "").unwrap();
            }
            assert_eq!(account_memory_below(folder.path()).is_ok(), !want.is_empty());
            assert_eq!(fs::read_to_string(&control).unwrap(), want, "with {file}");
        }
    }

    #[test]
    fn trees_live_beside_a_server_that_has_moved() {
        for (found, want) in [("/a/b", "/a/b"), ("/a/lastbyte.server", "/a")] {
            assert_eq!(without_server(found.into()), Path::new(want));
        }
    }
}
