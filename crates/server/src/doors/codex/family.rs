//! The two families of methods, which do the same in different words.

use std::time::Duration;

use super::envelope::quoted;
use super::fault::Fault;

/// Which family a command was started by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Family {
    /// `command/exec` and what controls it.
    Command,
    /// `process/spawn` and what controls it.
    Process,
}

impl Family {
    pub(super) fn output_delta(self) -> &'static str {
        match self {
            Self::Command => "command/exec/outputDelta",
            Self::Process => "process/outputDelta",
        }
    }

    /// How its notifications call the id.
    pub(super) fn id_member(self) -> &'static str {
        match self {
            Self::Command => "processId",
            Self::Process => "processHandle",
        }
    }

    pub(super) fn size_requires_tty(self) -> Fault {
        Fault::invalid_params(format!("{} size requires tty: true", self.starter()))
    }

    /// A `timeoutMs` that was given.
    pub(super) fn timeout(self, ms: i64) -> Result<Duration, Fault> {
        u64::try_from(ms).map(Duration::from_millis).map_err(|_| {
            let starter = self.starter();
            Fault::invalid_params(format!("{starter} timeoutMs must be non-negative, got {ms}"))
        })
    }

    pub(super) fn zero_size(self) -> Fault {
        let what = match self {
            Self::Command => "command/exec",
            Self::Process => "process",
        };
        Fault::invalid_params(format!("{what} size rows and cols must be greater than 0"))
    }

    pub(super) fn nothing_to_write(self) -> Fault {
        let method = match self {
            Self::Command => "command/exec/write",
            Self::Process => "process/writeStdin",
        };
        Fault::invalid_params(format!("{method} requires deltaBase64 or closeStdin"))
    }

    pub(super) fn duplicate(self, id: &str) -> Fault {
        Fault::invalid_request(match self {
            Self::Command => {
                format!("duplicate active command/exec process id: {}", quoted(id))
            }
            Self::Process => format!("duplicate active process handle: {id:?}"),
        })
    }

    pub(super) fn not_active(self, id: &str) -> Fault {
        Fault::invalid_request(match self {
            Self::Command => format!("no active command/exec for process id {}", quoted(id)),
            Self::Process => format!("no active process for process handle {id:?}"),
        })
    }

    pub(super) fn no_longer_running(self, id: &str) -> Fault {
        Fault::invalid_request(match self {
            Self::Command => format!("command/exec {} is no longer running", quoted(id)),
            Self::Process => format!("process {id:?} is no longer running"),
        })
    }

    pub(super) fn stdin_not_enabled(self) -> Fault {
        let what = match self {
            Self::Command => "command/exec",
            Self::Process => "process",
        };
        Fault::invalid_request(format!("stdin streaming is not enabled for this {what}"))
    }

    pub(super) fn failed_to_spawn(self, why: &str) -> Fault {
        let what = match self {
            Self::Command => "command",
            Self::Process => "process",
        };
        Fault::internal(format!("failed to spawn {what}: {why}"))
    }

    /// The policy is not enforced, so nothing was started.
    pub(super) fn not_sandboxed(self, why: &str) -> Fault {
        match self {
            Self::Command => Fault::internal(format!("exec failed: {why}")),
            Self::Process => self.failed_to_spawn(why),
        }
    }

    fn starter(self) -> &'static str {
        match self {
            Self::Command => "command/exec",
            Self::Process => "process/spawn",
        }
    }
}
