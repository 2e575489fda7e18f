//! Controllers: what the kernel counts and limits for each tree.
//!
//! Linux enables a controller below a cgroup only if no process is in the cgroup itself. So the server
//! moves into one beside those of its trees:
//!
//! ```text
//!  our own cgroup ──┬─ lastbyte.server (keeper and worker)
//!                   ├─ lastbyte-PID-N ── 0, 1, … (memory)
//!                   └─ lastbyte-PID-M ── 0, 1, … (trees with limits: memory, pids and cpu)
//! ```

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::locate::own_folder;

/// Not a name of a parent.
const SERVER: &str = "lastbyte.server";

/// A part of the kernel that counts and limits what a cgroup uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Controller {
    Memory,
    Pids,
    Cpu,
}

impl Controller {
    pub const ALL: [Self; 3] = [Self::Memory, Self::Pids, Self::Cpu];

    /// Its name in `cgroup.controllers`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Pids => "pids",
            Self::Cpu => "cpu",
        }
    }
}

/// Enables the controllers of our own cgroup below it, if no other program is in it. Moves this program,
/// and so what it starts later, if it has to.
pub fn enable_controllers() -> io::Result<()> {
    let own = own_folder().map_err(io::Error::other)?;
    if controllers_of(&own).is_empty() {
        return Err(Errno::NOENT.into());
    }
    if has_processes(&own)? { make_way(&own) } else { enable_below(&own, &Controller::ALL) }
}

/// The controllers that cgroups below our own can have, as far as it shows: it may still be refused.
pub fn offered() -> Vec<Controller> {
    own_folder().map(|own| controllers_of(&own)).unwrap_or_default()
}

/// Enables these controllers, as far as the cgroup has them. Fails if it has none of them. The root of
/// the hierarchy counts as having none: it belongs to the machine, and what is written there changes
/// every cgroup below it.
pub(super) fn enable_below(folder: &Path, wanted: &[Controller]) -> io::Result<()> {
    let has = controllers_of(folder);
    let enable: Vec<_> = wanted.iter().filter(|wanted| has.contains(wanted)).collect();
    if enable.is_empty() {
        return Err(Errno::NOENT.into());
    }
    let control = folder.join("cgroup.subtree_control");
    // One by one: the kernel may refuse one of them and not the others.
    let refused = enable.into_iter().map(|one| write(&control, &format!("+{}", one.name())));
    refused.collect::<Vec<_>>().into_iter().collect()
}

fn controllers_of(folder: &Path) -> Vec<Controller> {
    let is_root = !folder.join("cgroup.events").exists();
    let listed = fs::read_to_string(folder.join("cgroup.controllers")).unwrap_or_default();
    let has = |one: &Controller| listed.split_ascii_whitespace().any(|name| name == one.name());
    if is_root { Vec::new() } else { Controller::ALL.into_iter().filter(has).collect() }
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
    let enabled = if has_processes(own)? {
        Err(Errno::BUSY.into())
    } else {
        enable_below(own, &Controller::ALL)
    };
    enabled.inspect_err(|_| {
        // Another program is in our cgroup. It is left as it was.
        _ = enter(own).and_then(|()| fs::remove_dir(&server));
    })
}

/// Asked before anything is enabled: the kernel would enable some controllers in a cgroup with processes,
/// and then permit no processes below it.
fn has_processes(folder: &Path) -> io::Result<bool> {
    Ok(!fs::read_to_string(folder.join("cgroup.procs"))?.trim().is_empty())
}

/// Moves this program.
fn enter(folder: &Path) -> io::Result<()> {
    write(&folder.join("cgroup.procs"), "0")
}

/// Not `fs::write`, which would create the file if the folder is not a cgroup.
pub(super) fn write(file: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(file)?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cgroup_without_controllers_and_the_root_are_left_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let control = folder.path().join("cgroup.subtree_control");
        for (is_root, listed, want) in [
            (true, "cpuset cpu io memory pids", ""),
            (false, "cpuset io", ""),
            (false, "cpuset pids", "+pids"),
        ] {
            fs::write(&control, "").unwrap();
            fs::write(folder.path().join("cgroup.controllers"), listed).unwrap();
            if !is_root {
                fs::write(folder.path().join("cgroup.events"), "").unwrap();
            }
            let enabled = enable_below(folder.path(), &Controller::ALL);
            assert_eq!(enabled.is_ok(), !want.is_empty(), "{listed}");
            assert_eq!(fs::read_to_string(&control).unwrap(), want, "{listed}");
        }
    }

    #[test]
    fn trees_live_beside_a_server_that_has_moved() {
        for (found, want) in [("/a/b", "/a/b"), ("/a/lastbyte.server", "/a")] {
            assert_eq!(without_server(found.into()), Path::new(want));
        }
    }
}
