//! The commands of a connection that have ended, as long as somebody of their tree lives on: those
//! end with the connection.

use lastbyte_engine::{Process, StopPolicy, Verb, survived};
use tokio::task::JoinSet;

/// How many are gathered before it is looked who of them was survived: a look can take a pass over
/// all processes of the machine.
const LOOK_AT: usize = 128;

/// Ended commands that may have survivors.
#[derive(Debug, Default)]
pub(super) struct Ended {
    processes: Vec<Process>,
    look_at: usize,
    /// Those that are being looked at; few, since a look gathers.
    looks: JoinSet<Vec<Process>>,
}

impl Ended {
    pub(super) fn add(&mut self, process: Process) {
        self.processes.push(process);
        while let Some(Ok(survived)) = self.looks.try_join_next() {
            self.processes.extend(survived);
            self.look_at = 2 * self.processes.len();
        }
        if self.processes.len() >= self.look_at.max(LOOK_AT) && self.looks.is_empty() {
            self.looks.spawn(survived(std::mem::take(&mut self.processes)));
        }
    }

    /// Stops every survivor.
    pub(super) async fn stop(mut self) {
        while let Some(look) = self.looks.join_next().await {
            self.processes.extend(look.unwrap_or_default());
        }
        let mut stops = JoinSet::new();
        for process in survived(self.processes).await {
            stops.spawn(async move { process.stop_by(StopPolicy::KILL, Verb::Close).await });
        }
        stops.join_all().await;
    }
}
