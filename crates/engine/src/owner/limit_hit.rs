//! Whether a limit that the kernel enforces ended a command.

use lastbyte_sys::Signal;

use crate::launch::{Program, Resource, Resources, Spec};
use crate::process::ending::Status;
use crate::tree::Tree;

/// The limits of a command, and whether its leader is a shell.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KernelLimits {
    limits: Resources,
    in_shell: bool,
}

/// What a shell adds to the number of the signal that ended its command, for its own exit code.
const SIGNALLED: i32 = 128;

impl KernelLimits {
    /// `None` without limits.
    pub(crate) fn new(spec: &Spec) -> Option<Self> {
        let limits = spec.resources.as_ref()?.limits;
        Some(Self { limits, in_shell: matches!(spec.program, Program::Shell(_)) })
    }

    /// The limit that ended the leader. The kernel sends SIGXCPU and SIGXFSZ for nothing else.
    pub(super) fn hit(&self, status: Status, tree: &Tree) -> Option<Resource> {
        let ended_by = |signal: Signal| match status {
            Status::Signalled { signal: by, .. } => by == signal,
            Status::Exited(code) => self.in_shell && code == SIGNALLED + signal.number(),
            Status::Lost(_) => false,
        };
        if self.limits.file_size.is_some() && ended_by(Signal::XFSZ) {
            return Some(Resource::FileSize);
        }
        if self.limits.cpu_time.is_some() && ended_by(Signal::XCPU) {
            return Some(Resource::CpuTime);
        }
        let out_of_memory = || ended_by(Signal::KILL) && tree.oom_killed_at_limit();
        (self.limits.memory.is_some() && out_of_memory()).then_some(Resource::Memory)
    }
}
