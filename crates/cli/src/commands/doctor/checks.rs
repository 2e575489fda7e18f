//! The checks, in the order of a command's life. Each says in words what its outcome means.

use std::io;
use std::path::{Path, PathBuf};

use lastbyte_engine::{Enforcement, Missing};
use lastbyte_sys::cgroup::{self, NoCgroup};
use lastbyte_sys::spawn::Mechanism;
use lastbyte_sys::{descriptor_limit, probe};

use super::{Finding, Verdict};
use crate::format;

/// What a server itself has open, and some for its clients.
const OWN_DESCRIPTORS: u64 = 40;
/// With fewer, not even one command can run.
const LEAST_DESCRIPTORS: u64 = 20;
/// For each command that runs: a pidfd, a pipe and a log.
const DESCRIPTORS_EACH: u64 = 3;

/// What is there and what that means, or what its absence means.
type Check = Result<String, String>;

pub(super) fn all(
    folder: &Path,
    leaf: Result<PathBuf, NoCgroup>,
    tried: Vec<Tried>,
) -> Vec<Finding> {
    let mut findings = vec![
        finding("pidfd", Verdict::Needed, pidfd()),
        finding("clone3", Verdict::No, clone3()),
        finding("late exit status", Verdict::No, exit_status()),
        finding("splice", Verdict::No, splice(folder)),
        finding("punch hole", Verdict::No, punch_hole(folder)),
        finding("large pipes", Verdict::No, large_pipes()),
        finding("descriptors", Verdict::Needed, descriptors()),
        finding("kernel limits", Verdict::No, kernel_limits(leaf.is_ok())),
        finding("cgroup leaf", Verdict::No, cgroup_leaf(leaf)),
        finding("landlock", Verdict::No, landlock()),
        finding("namespaces", Verdict::No, namespaces()),
    ];
    findings.extend(tried.into_iter().map(sandbox_finding));
    findings
}

fn finding(name: &'static str, otherwise: Verdict, check: Check) -> Finding {
    let verdict = if check.is_ok() { Verdict::Yes } else { otherwise };
    Finding { name, verdict, meaning: check.unwrap_or_else(|without| without) }
}

/// How many commands of one process each can run at once on a server started here.
pub(super) fn most_processes() -> Option<u64> {
    enough_for(descriptor_limit::raised()).into_iter().chain(probe::process_limit()).min()
}

/// How many commands this number of descriptors is enough for. A server raises its limit as far as it may.
fn enough_for(limit: Option<u64>) -> Option<u64> {
    let limit = limit?;
    let most = limit.saturating_sub(OWN_DESCRIPTORS) / DESCRIPTORS_EACH;
    Some(if limit < LEAST_DESCRIPTORS { 0 } else { most.max(1) })
}

fn pidfd() -> Check {
    let needed =
        |errno| format!("needs Linux 5.4 or later, or a container that allows it ({errno})");
    probe::pidfd().map_err(needed)?;
    Ok("processes are held by descriptor, so a signal cannot hit the wrong one".into())
}

fn clone3() -> Check {
    probe::clone3().map_err(|errno| format!("using the older clone instead ({errno})"))?;
    Ok("commands can start in their own cgroup".into())
}

fn exit_status() -> Check {
    if probe::exit_status_by_pidfd() {
        Ok("exit status is known even if another part of a program reads it first".into())
    } else {
        let lost = "exit status is lost if another part of a program reads it first";
        Err(format!("{lost} (needs Linux 6.15, or it is refused here)"))
    }
}

fn splice(folder: &Path) -> Check {
    let kept = "only the last 256 KiB of output is kept, in memory";
    probe::splice(folder).map_err(|error| without(folder, &error, kept))?;
    Ok(format!("output goes straight to files below {}", folder_name(folder)))
}

fn punch_hole(folder: &Path) -> Check {
    let kept = "only 256 KiB beyond the quota is kept";
    probe::punch(folder).map_err(|error| without(folder, &error, kept))?;
    Ok("the middle of large output can be dropped and both ends kept".into())
}

fn without(folder: &Path, error: &io::Error, consequence: &str) -> String {
    format!("{} does not allow it ({error}): {consequence}", folder_name(folder))
}

/// Where runs keep their folders; that of this run is gone in a moment.
fn folder_name(folder: &Path) -> String {
    folder.parent().unwrap_or(folder).display().to_string()
}

fn large_pipes() -> Check {
    let large = "up to 16 busy commands get 1 MiB pipes";
    match probe::pipe_limits() {
        Some((most, _)) if most < 1 << 20 => {
            Err(format!("pipes hold at most {most} bytes: heavy output is slower"))
        }
        Some((_, 0)) => Ok(large.into()),
        Some((_, pages)) => Ok(format!("{large}, out of {pages} pages per user")),
        None => Err("the kernel does not report the maximum pipe size".into()),
    }
}

fn descriptors() -> Check {
    let limit = descriptor_limit::raised();
    match (limit, enough_for(limit)) {
        (Some(limit), Some(0)) => {
            Err(format!("limit {limit}: too few; raise it with `ulimit -Hn`"))
        }
        (Some(limit), Some(most)) => Ok(format!(
            "a server can have {limit}: enough for {} (change with `ulimit -Hn`)",
            format::count(most, "command", "commands")
        )),
        _ => Ok("no limit".into()),
    }
}

fn cgroup_leaf(leaf: Result<PathBuf, NoCgroup>) -> Check {
    let searched = "a stop searches /proc for what a command started";
    let folder = leaf.map_err(|why| format!("{}: {searched}{}", chain(why), way_to_a_cgroup()))?;
    let own = "each command and everything it starts get their own cgroup";
    Ok(format!("{own}, below {}", folder.display()))
}

/// A server that is alone in its cgroup can enable its controllers; whether this one is, nobody knows
/// before.
fn kernel_limits(has_cgroup: bool) -> Check {
    let names: Vec<_> = cgroup::offered().into_iter().map(|one| one.name()).collect();
    if has_cgroup && !names.is_empty() {
        let names = names.join(", ");
        return Ok(format!("{names}: of a whole tree, if a server is alone in this cgroup"));
    }
    Err("no controllers: limits of memory and pids are sampled, and cpus cannot be limited".into())
}

/// How this user can have a server whose stops are proved.
fn way_to_a_cgroup() -> &'static str {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    if runtime.is_some_and(|folder| folder.join("systemd/private").exists()) {
        "; a server started by `systemd-run --user --scope -p Delegate=yes` has cgroups"
    } else {
        ""
    }
}

fn landlock() -> Check {
    let version = probe::landlock_abi().ok_or("not in this kernel: nothing can be sandboxed")?;
    Ok(format!("version {version}: part of every sandbox"))
}

fn namespaces() -> Check {
    probe::namespaces().map_err(|errno| format!("this user may not create them ({errno})"))?;
    Ok("this user may create them, for a sandbox's own mounts".into())
}

/// An error and what caused it.
fn chain(error: impl Into<anyhow::Error>) -> String {
    format!("{:#}", error.into())
}

/// A way to enforce policies, and what it lacks here.
pub(super) type Tried = (Enforcement, Result<(), Missing>);

/// Best first.
pub(super) fn try_all() -> Vec<Tried> {
    let ways = Enforcement::ALL.into_iter();
    ways.map(|way| (way, way.probe(Mechanism::Clone3))).collect()
}

/// The best way, in a word; `None` when no command can be sandboxed.
pub(super) fn enforced_by(tried: &[Tried]) -> Option<&'static str> {
    let (way, _) = tried.iter().find(|(_, tried)| tried.is_ok())?;
    Some(match way {
        Enforcement::Mounts => "mounts",
        Enforcement::UserMounts => "user_mounts",
        Enforcement::Landlock => "landlock",
    })
}

fn sandbox_finding((way, tried): Tried) -> Finding {
    let (name, meaning) = match way {
        Enforcement::Mounts => (
            "mount sandbox",
            "every policy, by read-only mounts, Landlock and a system call filter",
        ),
        Enforcement::UserMounts => {
            ("user sandbox", "the same in a user namespace, for an unprivileged server")
        }
        Enforcement::Landlock => (
            "bare sandbox",
            "without namespaces: no --network or --protect, and file modes, owners and times cannot be \
             changed",
        ),
    };
    let check = tried.map(|()| meaning.to_owned()).map_err(chain);
    finding(name, Verdict::No, check)
}
