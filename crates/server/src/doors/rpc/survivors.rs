//! What ended commands of a connection left running: it is stopped when the connection closes.

use lastbyte_engine::{Process, StopPolicy, Verb, survived};
use tokio::task::JoinSet;

/// How many are collected before a check for survivors, which can take a pass over all processes of
/// the machine.
const CHECK_AT: usize = 128;

/// Ended commands that may have survivors.
#[derive(Debug, Default)]
pub(crate) struct Survivors {
    processes: Vec<Process>,
    check_at: usize,
    /// At most one at a time.
    check: JoinSet<Vec<Process>>,
}

impl Survivors {
    pub(crate) fn add(&mut self, process: Process) {
        self.processes.push(process);
        while let Some(Ok(survived)) = self.check.try_join_next() {
            self.processes.extend(survived);
            self.check_at = 2 * self.processes.len();
        }
        if self.processes.len() >= self.check_at.max(CHECK_AT) && self.check.is_empty() {
            self.check.spawn(survived(std::mem::take(&mut self.processes)));
        }
    }

    /// Stops every survivor.
    pub(crate) async fn stop(mut self) {
        while let Some(checked) = self.check.join_next().await {
            self.processes.extend(checked.unwrap_or_default());
        }
        let mut stops = JoinSet::new();
        for process in survived(self.processes).await {
            stops.spawn(async move { process.stop_by(StopPolicy::KILL, Verb::Close).await });
        }
        stops.join_all().await;
    }
}
