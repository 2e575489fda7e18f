//! What must not be left when everything has ended: descriptors, zombies, processes, cgroups.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::doors::{kill_marked, marked};
use super::proc::{self, Process};
use super::server::Server;
use super::tally::Tally;

/// More than an idle server has.
const TOLERATED: usize = 10;
/// Empty log files that are kept open for the next processes.
const LOGS: usize = 32;
/// How long it may take until all is closed and reaped.
const PATIENCE: Duration = Duration::from_secs(10);

/// The descriptors of an idle server.
pub(crate) struct Idle {
    descriptors: usize,
}

impl Idle {
    pub(crate) fn measure(server: &Server) -> Self {
        Self { descriptors: open_files(server).len() }
    }

    /// While the server runs and has nothing to do.
    pub(crate) fn check(&self, server: &Server, tally: &Tally) {
        if !eventually(|| open_files(server).len() <= self.descriptors + TOLERATED) {
            let open = open_files(server);
            let (count, idle) = (open.len(), self.descriptors);
            let what = format!("{count} descriptors, {idle} when idle: {open:?}");
            tally.wrong_at("the server at the end", &what);
        }
        if !eventually(|| zombies_below(server.pid()).is_empty()) {
            let what = format!("zombies: {:?}", zombies_below(server.pid()));
            tally.wrong_at("the server at the end", &what);
        }
        if !eventually(|| commands(server).is_empty()) {
            tally.wrong_at("the server at the end", &format!("running: {:?}", commands(server)));
        }
        // All but the keeper, a worker and a holder.
        if !eventually(|| marked(&server.mark).len() <= 3) {
            let all: Vec<String> = marked(&server.mark).iter().map(named).collect();
            tally.wrong_at("the server at the end", &format!("too many processes: {all:?}"));
        }
    }
}

/// After the server has shut down.
pub(super) fn check_gone(server: &Server, tally: &Tally) {
    if !eventually(|| marked(&server.mark).is_empty()) {
        let left: Vec<String> = marked(&server.mark).iter().map(named).collect();
        tally.wrong_at("after the shutdown", &format!("still running: {left:?}"));
        kill_marked(&server.mark);
    }
    let pids = server.pids();
    let ours = |folder: &PathBuf| {
        let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let pid = name.strip_prefix("lastbyte-").and_then(|rest| rest.split('-').next());
        pid.and_then(|pid| pid.parse().ok()).is_some_and(|pid| pids.contains(&pid))
    };
    let left: Vec<PathBuf> = folders_below(Path::new("/sys/fs/cgroup"), 4).filter(ours).collect();
    if !left.is_empty() {
        tally.wrong_at("after the shutdown", &format!("cgroups: {left:?}"));
    }
}

/// Of each of the server's processes, those that it has most of.
pub(crate) fn open_files(server: &Server) -> Vec<PathBuf> {
    let own = marked(&server.mark).into_iter().filter(is_server);
    let open = own.map(|process| {
        let (logs, mut others): (Vec<_>, Vec<_>) =
            proc::open_files(process.pid).into_iter().partition(|path| is_log(path));
        // Some are kept for the next processes.
        others.extend(logs.into_iter().skip(LOGS));
        others
    });
    open.max_by_key(Vec::len).unwrap_or_default()
}

fn is_log(path: &Path) -> bool {
    path.parent().is_some_and(|folder| folder.ends_with("logs"))
}

fn zombies_below(pid: u32) -> Vec<u32> {
    let children = proc::children_of(pid);
    let zombies = children.iter().filter(|child| child.is_zombie()).map(|child| child.pid);
    let deeper = children.iter().flat_map(|child| zombies_below(child.pid));
    zombies.chain(deeper).collect()
}

/// What runs besides the server's own processes.
fn commands(server: &Server) -> Vec<String> {
    let is_command = |process: &&Process| !is_server(process);
    marked(&server.mark).iter().filter(is_command).map(named).collect()
}

/// Keeper, worker and holder have one command line.
pub(crate) fn is_server(process: &Process) -> bool {
    process.command().contains("lastbyte serve")
}

fn named(process: &Process) -> String {
    format!("{} {}", process.pid, process.command())
}

fn eventually(is_so: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        if Instant::now() > deadline {
            return false;
        }
        thread::sleep(Duration::from_millis(20));
    }
    true
}

fn folders_below(folder: &Path, depth: u32) -> Box<dyn Iterator<Item = PathBuf>> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    Box::new(folders.flat_map(move |entry| {
        let path = entry.path();
        let below = if depth > 1 { Some(folders_below(&path, depth - 1)) } else { None };
        std::iter::once(path).chain(below.into_iter().flatten())
    }))
}
