//! Limits of each process of a tree, which the kernel passes on to its children.

use rustix::process::{Resource, getrlimit};

use crate::descriptor_limit::SoftAndHard;

/// What each process may use. `None` leaves a limit as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rlimits {
    /// How many descriptors it may have open. Past it, opening fails (`EMFILE`).
    pub open_files: Option<u64>,
    /// How large a file it may write, in bytes. Past it, it gets SIGXFSZ.
    pub file_size: Option<u64>,
    /// In seconds of processor time. Past it, it gets SIGXCPU, and SIGKILL a second later.
    pub cpu_seconds: Option<u64>,
}

impl Rlimits {
    /// In the form that the child sets. Only root may raise a hard limit, so none is raised.
    pub(crate) fn for_child(self) -> [Option<(usize, SoftAndHard)>; 3] {
        let Self { open_files, file_size, cpu_seconds } = self;
        let both = |limit: Option<u64>, kind| Some([limit?.min(hard(kind)); 2]);
        let cpu = cpu_seconds.map(|soft| {
            let hard = hard(Resource::Cpu);
            [soft.min(hard), soft.saturating_add(1).min(hard)]
        });
        [
            (libc::RLIMIT_NOFILE, both(open_files, Resource::Nofile)),
            (libc::RLIMIT_FSIZE, both(file_size, Resource::Fsize)),
            (libc::RLIMIT_CPU, cpu),
        ]
        .map(|(which, limits)| Some((which as usize, limits?)))
    }
}

/// The hard limit of this program.
fn hard(kind: Resource) -> u64 {
    getrlimit(kind).maximum.unwrap_or(u64::MAX)
}
