//! The checks, in the order of a command's life. Each says in words what its outcome means.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

use lastbyte_sys::cgroup::NoLeaf;
use lastbyte_sys::probe;

use super::sandboxes::{self, Tried};
use super::{Finding, Verdict};

/// What the program itself has open, and some to spare.
const OWN_DESCRIPTORS: u64 = 100;
/// A pidfd and a pipe for each silent command.
const DESCRIPTORS_EACH: u64 = 2;

pub(super) fn all(folder: &Path, leaf: Result<PathBuf, NoLeaf>, tried: &[Tried]) -> Vec<Finding> {
    let mut findings = vec![
        pidfd(),
        clone3(),
        exit_status(),
        splice(folder),
        punch_hole(folder),
        large_pipes(),
        descriptors(),
        cgroup_leaf(leaf),
        landlock(),
        namespaces(),
    ];
    findings.extend(tried.iter().map(sandboxes::finding));
    findings
}

/// How many silent commands the descriptors are enough for.
pub(super) fn most_processes() -> Option<u64> {
    let limit = probe::descriptor_limit()?;
    Some(limit.saturating_sub(OWN_DESCRIPTORS) / DESCRIPTORS_EACH)
}

pub(super) fn yes(name: &'static str, meaning: impl Into<String>) -> Finding {
    Finding { name, verdict: Verdict::Yes, meaning: meaning.into() }
}

pub(super) fn no(name: &'static str, meaning: impl Into<String>) -> Finding {
    Finding { name, verdict: Verdict::No, meaning: meaning.into() }
}

fn pidfd() -> Finding {
    match probe::pidfd() {
        Ok(()) => yes("pidfd", "a process is held by a descriptor: no signal can hit a stranger"),
        Err(errno) => Finding {
            name: "pidfd",
            verdict: Verdict::Needed,
            meaning: format!(
                "Linux 5.4 or later is needed, or a container that allows it ({errno})"
            ),
        },
    }
}

fn clone3() -> Finding {
    match probe::clone3() {
        Ok(()) => yes("clone3", "commands can be started in a cgroup of their own"),
        Err(errno) => no("clone3", format!("the older clone is used instead ({errno})")),
    }
}

fn exit_status() -> Finding {
    const NAME: &str = "late exit status";
    match probe::exit_status_by_pidfd() {
        true => {
            yes(NAME, "an exit status is known even if another part of a program took it first")
        }
        false => no(
            NAME,
            "an exit status that another part of a program takes is lost (before Linux 6.15)",
        ),
    }
}

fn splice(folder: &Path) -> Finding {
    match probe::splice(folder) {
        Ok(()) => {
            yes("splice", format!("output goes straight into files below {}", folder_name(folder)))
        }
        Err(error) => no(
            "splice",
            without(folder, &error, "only the last 256 KiB of output are kept, in memory"),
        ),
    }
}

fn punch_hole(folder: &Path) -> Finding {
    match probe::punch(folder) {
        Ok(()) => {
            yes("punch hole", "the middle of a large output can be dropped, both ends are kept")
        }
        Err(error) => no(
            "punch hole",
            without(folder, &error, "past its quota only 256 KiB more of an output are kept"),
        ),
    }
}

fn without(folder: &Path, error: &io::Error, consequence: &str) -> String {
    format!("{} does not allow it ({error}): {consequence}", folder_name(folder))
}

/// Where runs keep their folders; that of this run is gone in a moment.
fn folder_name(folder: &Path) -> String {
    folder.parent().unwrap_or(folder).display().to_string()
}

fn large_pipes() -> Finding {
    const NAME: &str = "large pipes";
    match probe::pipe_limits() {
        Some((most, _)) if most < 1 << 20 => {
            no(NAME, format!("pipes have at most {most} bytes: a flood of output is slower"))
        }
        Some((_, 0)) => yes(NAME, "up to 16 busy commands get pipes of 1 MiB"),
        Some((_, pages)) => yes(
            NAME,
            format!(
                "up to 16 busy commands get pipes of 1 MiB, of the {pages} pages a user may have"
            ),
        ),
        None => no(NAME, "the kernel does not say how large pipes may be"),
    }
}

fn descriptors() -> Finding {
    match (probe::descriptor_limit(), most_processes()) {
        (Some(limit), Some(most)) => yes(
            "descriptors",
            format!(
                "{limit} may be open: enough for {most} silent commands (`ulimit -n` changes it)"
            ),
        ),
        _ => yes("descriptors", "as many as there are"),
    }
}

fn cgroup_leaf(leaf: Result<PathBuf, NoLeaf>) -> Finding {
    const NAME: &str = "cgroup leaf";
    match leaf {
        Ok(folder) => yes(
            NAME,
            format!(
                "a command and all it starts are in a cgroup of their own, below {}",
                folder.display()
            ),
        ),
        Err(error) => no(
            NAME,
            format!(
                "{}: what a command starts is looked for in /proc when it is stopped",
                chain(&error)
            ),
        ),
    }
}

fn landlock() -> Finding {
    match probe::landlock_abi() {
        Some(version) => yes("landlock", format!("version {version}: a part of every sandbox")),
        None => no("landlock", "this kernel has none: nothing can be sandboxed"),
    }
}

fn namespaces() -> Finding {
    match probe::namespaces() {
        Ok(()) => yes("namespaces", "this user may make them, for mounts of a sandbox's own"),
        Err(errno) => no("namespaces", format!("this user may not make them ({errno})")),
    }
}

pub(super) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
