//! How much a server takes on, and how much one session of it.

use super::process_map::ProcessMap;
use crate::launch::Session;
use crate::process::Process;

/// A start past one of these is refused. `None` means no cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Caps {
    /// Processes that run, or have exited and are being drained.
    pub running: Option<usize>,
    /// The same in one session. Processes without a session count as one session.
    pub running_per_session: Option<usize>,
    /// What the output of all processes takes on disk.
    pub bytes: Option<u64>,
    /// What the output of one session takes on disk.
    pub bytes_per_session: Option<u64>,
}

/// The cap that a start would pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CapReached {
    #[error("{0} processes are running, which is the server's cap")]
    Running(usize),
    #[error("{0} processes of this session are running, which is the cap of a session")]
    RunningInSession(usize),
    #[error("the output of all processes takes more than {0} bytes, the server's cap")]
    Bytes(u64),
    #[error("the output of this session takes more than {0} bytes, the cap of a session")]
    BytesInSession(u64),
}

impl Caps {
    /// Whether starts under way have to be counted.
    pub(super) fn count_running(&self) -> bool {
        self.running.is_some() || self.running_per_session.is_some()
    }

    /// Whether one more process may be started in this session. Looks only at what has a
    /// cap, for bytes at each process.
    pub(super) fn check(
        &self,
        processes: &ProcessMap,
        session: Option<&Session>,
    ) -> Result<(), CapReached> {
        let in_session = |process: &&Process| process.spec().session.as_ref() == session;
        let bytes = |process: &Process| process.disk_bytes();
        let most =
            |cap: Option<usize>, count: &dyn Fn() -> usize| cap.filter(|cap| count() >= *cap);
        let most_bytes = |cap: Option<u64>, sum: &dyn Fn() -> u64| cap.filter(|cap| sum() >= *cap);
        let all = || processes.unended().count() + processes.starting();
        if let Some(cap) = most(self.running, &all) {
            return Err(CapReached::Running(cap));
        }
        let own = || {
            let running = processes.unended().filter(in_session).count();
            running + processes.starting_in(session)
        };
        if let Some(cap) = most(self.running_per_session, &own) {
            return Err(CapReached::RunningInSession(cap));
        }
        let all = || processes.all().map(bytes).sum();
        if let Some(cap) = most_bytes(self.bytes, &all) {
            return Err(CapReached::Bytes(cap));
        }
        let own = || processes.all().filter(in_session).map(bytes).sum();
        most_bytes(self.bytes_per_session, &own)
            .map_or(Ok(()), |cap| Err(CapReached::BytesInSession(cap)))
    }
}
