//! What a cgroup may use, and what came of it.

use std::fs;
use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::controllers::{Controller, write};
use super::group::Cgroup;
use crate::procfs::words;

/// What the processes of a cgroup may use together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CgroupLimits {
    /// In bytes. Past it, the kernel kills all of them.
    pub memory: Option<u64>,
    /// How many processes and threads. Past it, the kernel refuses to start more.
    pub pids: Option<u64>,
    /// In thousandths of a processor. Past it, they wait.
    pub milli_cpus: Option<u64>,
}

/// The processes of a cgroup that the kernel killed for lack of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OomKills {
    pub killed: u64,
    /// How often the cgroup's own limit was the reason, or that of one below it.
    pub at_own_limit: u64,
}

/// A period of the scheduler, in microseconds. The kernel's default.
const PERIOD_US: u64 = 100_000;
/// The shortest time per period that the kernel takes.
const LEAST_US: u64 = 1_000;

impl Cgroup {
    /// Sets these limits and returns those controllers that enforce one. The cgroup is not reused.
    /// Fails if the kernel refuses a limit whose controller is there.
    pub fn limit(&self, limits: CgroupLimits) -> io::Result<Vec<Controller>> {
        self.limited.store(true, Ordering::Relaxed);
        let CgroupLimits { memory, pids, milli_cpus } = limits;
        let mut set = Vec::new();
        if let Some(bytes) = memory.filter(|_| self.has("memory.max")) {
            // If one is killed, the rest of the tree is of no use. Swap would only delay it.
            self.set_if_there("memory.oom.group", "1")?;
            self.set_if_there("memory.swap.max", "0")?;
            self.set("memory.max", &bytes.to_string())?;
            set.push(Controller::Memory);
        }
        if let Some(count) = pids.filter(|_| self.has("pids.max")) {
            self.set("pids.max", &count.to_string())?;
            set.push(Controller::Pids);
        }
        if let Some(milli) = milli_cpus.filter(|_| self.has("cpu.max")) {
            let quota = milli.saturating_mul(PERIOD_US / 1_000).max(LEAST_US);
            self.set("cpu.max", &format!("{quota} {PERIOD_US}"))?;
            set.push(Controller::Cpu);
        }
        Ok(set)
    }

    /// How many of its processes the kernel killed because memory ran out, if it accounts memory here.
    /// A cgroup is not reused after that, so all of them were of this tree.
    pub fn oom_kills(&self) -> Option<OomKills> {
        if !self.counts_memory {
            return None;
        }
        let events = self.read("memory.events")?;
        Some(OomKills {
            killed: count(&events, "oom_kill ")?,
            at_own_limit: count(&events, "oom ")?,
        })
    }

    /// How often the kernel refused to start a process in it, because of its own limit.
    pub fn refused_forks(&self) -> Option<u64> {
        count(&self.read("pids.events")?, "max ")
    }

    /// The processor time of all its processes, user and system, if no other tree was here before.
    pub fn cpu_time(&self) -> Option<(Duration, Duration)> {
        if self.was_used.load(Ordering::Relaxed) {
            return None;
        }
        let stat = self.read("cpu.stat")?;
        let time = |name| count(&stat, name).map(Duration::from_micros);
        Some((time("user_usec ")?, time("system_usec ")?))
    }

    fn has(&self, file: &str) -> bool {
        self.folder.join(file).exists()
    }

    fn read(&self, file: &str) -> Option<String> {
        fs::read_to_string(self.folder.join(file)).ok()
    }

    fn set(&self, file: &str, value: &str) -> io::Result<()> {
        write(&self.folder.join(file), value)
    }

    /// A kernel without swap, or before 4.19, lacks some files.
    fn set_if_there(&self, file: &str, value: &str) -> io::Result<()> {
        if self.has(file) { self.set(file, value) } else { Ok(()) }
    }
}

/// The number after this name, which ends with a space.
fn count(text: &str, name: &str) -> Option<u64> {
    words(text, name).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder that looks like a cgroup with these files.
    fn cgroup(files: &[(&str, &str)]) -> (tempfile::TempDir, Cgroup) {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let cgroup = Cgroup::at(folder.path().to_owned());
        (folder, cgroup)
    }

    #[test]
    fn processes_that_were_killed_for_memory_are_counted_where_the_kernel_accounts_it() {
        assert_eq!(cgroup(&[]).1.oom_kills(), None);
        for (text, want) in [
            ("low 0\nhigh 0\nmax 8\noom 5\noom_kill 2\noom_group_kill 7\n", Some((2, 5))),
            ("oom 0\noom_kill 3\n", Some((3, 0))),
            ("oom 5\noom_group_kill 1\n", None),
        ] {
            let kills = cgroup(&[("memory.events", text)]).1.oom_kills();
            let want = want.map(|(killed, at_own_limit)| OomKills { killed, at_own_limit });
            assert_eq!(kills, want, "{text:?}");
        }
    }

    #[test]
    fn a_limit_is_set_where_its_controller_is_and_such_a_cgroup_is_not_reused() {
        let files = [("memory.max", ""), ("memory.oom.group", ""), ("cpu.max", "")];
        let (folder, cgroup) = cgroup(&files);
        let limits = CgroupLimits { memory: Some(1 << 20), pids: Some(7), milli_cpus: Some(1500) };
        let set = cgroup.limit(limits).unwrap();
        assert_eq!(set, [Controller::Memory, Controller::Cpu]);
        let text = |file| fs::read_to_string(folder.path().join(file)).ok();
        assert_eq!(text("memory.max").unwrap(), "1048576");
        assert_eq!(text("memory.oom.group").unwrap(), "1");
        assert_eq!(text("cpu.max").unwrap(), "150000 100000");
        assert_eq!((text("memory.swap.max"), text("pids.max")), (None, None));
        assert!(!cgroup.end_use(cgroup.state().unwrap()));
    }

    #[test]
    fn processor_time_is_told_of_the_first_tree_only() {
        let stat = "usage_usec 30\nuser_usec 20\nsystem_usec 10\nnr_periods 0\n";
        let (_folder, cgroup) = cgroup(&[("cpu.stat", stat)]);
        let want = (Duration::from_micros(20), Duration::from_micros(10));
        assert_eq!(cgroup.cpu_time(), Some(want));
        cgroup.end_use(cgroup.state().unwrap());
        assert_eq!(cgroup.cpu_time(), None);
    }
}
