//! What a command and everything it starts may use.

use std::fmt;
use std::time::Duration;

use lastbyte_sys::cgroup::{CgroupLimits, Controller};
use lastbyte_sys::rlimits::Rlimits;

use crate::tree::Reach;

/// Limits of one launch. `None` means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Resources {
    /// Of the tree, in bytes.
    pub memory: Option<u64>,
    /// Of the tree, in thousandths of a processor.
    pub milli_cpus: Option<u64>,
    /// Processes and threads of the tree.
    pub pids: Option<u64>,
    /// Of each process.
    pub open_files: Option<u64>,
    /// Of each file that a process writes, in bytes.
    pub file_size: Option<u64>,
    /// Of each process, and of the tree.
    pub cpu_time: Option<Duration>,
    /// Start only if the kernel enforces every limit.
    pub strict: bool,
}

/// One of the limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Resource {
    Memory,
    Cpus,
    Pids,
    OpenFiles,
    FileSize,
    CpuTime,
}

/// How a limit is enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnforcedBy {
    /// It cannot be passed.
    Kernel,
    /// The server looks several times a second, and stops the tree when it has passed the limit.
    Sampling,
}

/// Why a launch with limits was not started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ResourceError {
    #[error("the limit of {which} is {asked}, above the server's cap of {cap}")]
    AboveCap { which: Resource, asked: u64, cap: u64 },
    #[error("the limit of {which} is {asked}, less than any command needs ({least})")]
    TooSmall { which: Resource, asked: u64, least: u64 },
    /// There is no controller for it, and no other way.
    #[error("this server cannot limit {which}: its cgroup has no {controller} controller")]
    Unavailable { which: Resource, controller: &'static str },
    #[error(
        "the kernel does not limit {which} here, and `strict` asks for that: the server's cgroup has no {controller} controller"
    )]
    NotByKernel { which: Resource, controller: &'static str },
}

/// The limits of a server for all launches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResourceRules {
    /// For launches that do not choose.
    pub defaults: Resources,
    /// No launch can have more.
    pub caps: Resources,
}

/// With less memory, the kernel could not run a program at all.
const LEAST_MEMORY: u64 = 1 << 20;

impl Resource {
    pub const ALL: [Self; 6] =
        [Self::Memory, Self::Cpus, Self::Pids, Self::OpenFiles, Self::FileSize, Self::CpuTime];

    /// The controller that limits it for a whole tree; `None` if each process is limited by itself.
    fn controller(self) -> Option<Controller> {
        match self {
            Self::Memory => Some(Controller::Memory),
            Self::Cpus => Some(Controller::Cpu),
            Self::Pids => Some(Controller::Pids),
            Self::OpenFiles | Self::FileSize | Self::CpuTime => None,
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Memory => "memory",
            Self::Cpus => "cpus",
            Self::Pids => "pids",
            Self::OpenFiles => "open files",
            Self::FileSize => "file size",
            Self::CpuTime => "cpu time",
        })
    }
}

impl Resources {
    pub fn is_empty(&self) -> bool {
        Resource::ALL.into_iter().all(|which| self.get(which).is_none())
    }

    /// One limit as a number: bytes, thousandths of a processor, milliseconds or a count.
    pub fn get(&self, which: Resource) -> Option<u64> {
        match which {
            Resource::Memory => self.memory,
            Resource::Cpus => self.milli_cpus,
            Resource::Pids => self.pids,
            Resource::OpenFiles => self.open_files,
            Resource::FileSize => self.file_size,
            Resource::CpuTime => self.cpu_time.map(milliseconds),
        }
    }

    /// Each limit from the first of the two that has it.
    fn or(self, other: Self) -> Self {
        Self {
            memory: self.memory.or(other.memory),
            milli_cpus: self.milli_cpus.or(other.milli_cpus),
            pids: self.pids.or(other.pids),
            open_files: self.open_files.or(other.open_files),
            file_size: self.file_size.or(other.file_size),
            cpu_time: self.cpu_time.or(other.cpu_time),
            strict: self.strict || other.strict,
        }
    }

    fn check(&self) -> Result<(), ResourceError> {
        for which in Resource::ALL {
            let least = if which == Resource::Memory { LEAST_MEMORY } else { 1 };
            if let Some(asked) = self.get(which).filter(|asked| *asked < least) {
                return Err(ResourceError::TooSmall { which, asked, least });
            }
        }
        Ok(())
    }

    pub(crate) fn for_cgroup(&self) -> CgroupLimits {
        CgroupLimits { memory: self.memory, pids: self.pids, milli_cpus: self.milli_cpus }
    }

    pub(crate) fn for_each_process(&self) -> Rlimits {
        Rlimits {
            open_files: self.open_files,
            file_size: self.file_size,
            cpu_seconds: self.cpu_time.map(|time| milliseconds(time).div_ceil(1000)),
        }
    }

    /// How each limit is enforced on a tree with these controllers that is reached like this.
    pub(crate) fn enforced_by(
        self,
        controllers: &[Controller],
        reach: Reach,
    ) -> Result<Vec<(Resource, EnforcedBy)>, ResourceError> {
        let limited = Resource::ALL.into_iter().filter(|which| self.get(*which).is_some());
        let enforced = |which: Resource| {
            let Some(controller) = which.controller() else { return Ok(EnforcedBy::Kernel) };
            let can_look = reach != Reach::Group && which != Resource::Cpus;
            match (controllers.contains(&controller), can_look) {
                (true, _) => Ok(EnforcedBy::Kernel),
                (false, true) if !self.strict => Ok(EnforcedBy::Sampling),
                (false, true) => {
                    Err(ResourceError::NotByKernel { which, controller: controller.name() })
                }
                (false, false) => {
                    Err(ResourceError::Unavailable { which, controller: controller.name() })
                }
            }
        };
        limited.map(|which| Ok((which, enforced(which)?))).collect()
    }
}

impl ResourceRules {
    /// The limits that a launch gets that asks for these.
    pub(crate) fn apply(&self, asked: Resources) -> Result<Resources, ResourceError> {
        asked.check()?;
        let chosen = asked.or(self.defaults);
        for which in Resource::ALL {
            let passes = |cap: &u64| asked.get(which).is_some_and(|asked| asked > *cap);
            if let (Some(asked), Some(cap)) =
                (asked.get(which), self.caps.get(which).filter(passes))
            {
                return Err(ResourceError::AboveCap { which, asked, cap });
            }
        }
        Ok(chosen.or(self.caps))
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Resources = Resources {
        memory: None,
        milli_cpus: None,
        pids: None,
        open_files: None,
        file_size: None,
        cpu_time: None,
        strict: false,
    };

    #[test]
    fn a_launch_gets_what_it_asks_for_else_the_default_else_the_cap() {
        let rules = ResourceRules {
            defaults: Resources { pids: Some(50), ..NONE },
            caps: Resources { pids: Some(100), memory: Some(1 << 30), ..NONE },
        };
        let apply = |pids, memory| rules.apply(Resources { pids, memory, ..NONE });
        let got = |pids, memory| apply(pids, memory).map(|got| (got.pids, got.memory)).unwrap();
        assert_eq!(got(None, None), (Some(50), Some(1 << 30)));
        assert_eq!(got(Some(100), Some(2 << 20)), (Some(100), Some(2 << 20)));
        let refused = apply(Some(101), None).unwrap_err();
        assert_eq!(refused.to_string(), "the limit of pids is 101, above the server's cap of 100");
        let refused = apply(None, Some(1000)).unwrap_err();
        assert_eq!(
            refused,
            ResourceError::TooSmall { which: Resource::Memory, asked: 1000, least: 1 << 20 }
        );
        assert!(matches!(apply(Some(0), None), Err(ResourceError::TooSmall { .. })));
    }

    #[test]
    fn what_the_kernel_does_not_limit_is_sampled_or_refused() {
        let all = Resources {
            memory: Some(1),
            milli_cpus: None,
            pids: Some(1),
            open_files: Some(1),
            file_size: Some(1),
            cpu_time: Some(Duration::from_secs(1)),
            strict: false,
        };
        use EnforcedBy::{Kernel, Sampling};
        let check =
            |limits: Resources, has: &[Controller], reach, want: Option<[EnforcedBy; 5]>| {
                let by = limits.enforced_by(has, reach).ok();
                let by = by.map(|by| by.into_iter().map(|(_, by)| by).collect::<Vec<_>>());
                assert_eq!(by, want.map(Vec::from), "{has:?} {reach:?}");
            };
        let sampled = [Sampling, Sampling, Kernel, Kernel, Kernel];
        check(all, &Controller::ALL, Reach::Cgroup, Some([Kernel; 5]));
        check(all, &[], Reach::Scan, Some(sampled));
        check(all, &[], Reach::Group, None);
        let strict = Resources { strict: true, ..all };
        check(strict, &[Controller::Memory], Reach::Cgroup, None);
        check(strict, &Controller::ALL, Reach::Cgroup, Some([Kernel; 5]));
        let cpus = Resources { milli_cpus: Some(500), ..NONE };
        let refused = cpus.enforced_by(&[Controller::Memory], Reach::Cgroup).unwrap_err();
        let want = "this server cannot limit cpus: its cgroup has no cpu controller";
        assert_eq!(refused.to_string(), want);
    }
}
