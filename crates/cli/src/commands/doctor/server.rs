//! The server of this user, and how often it has crashed.

use std::fmt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use lastbyte_client::Client;
use lastbyte_client::wire::{Health, KeeperHealth, Retention};
use serde::Serialize;
use tokio::time::timeout;

use crate::daemon::instance::read_address;
use crate::{format, paths};

/// What a server says of itself.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pid: u32,
    uptime_s: u64,
    /// Absent if a crash would lose all running commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    keeper: Option<KeeperHealth>,
    /// Shown with what it keeps on disk.
    #[serde(skip)]
    pub(super) processes: u64,
    #[serde(skip)]
    pub(super) retention: Option<Retention>,
}

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(2);

impl Report {
    /// Of the server that uses this state directory, if one answers.
    pub(super) fn ask(state: Option<&Path>) -> Option<Self> {
        let usual = || paths::socket_path(None, None).ok();
        let socket = state.and_then(read_address).or_else(usual)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
        let health = runtime
            .block_on(async { timeout(PATIENCE, Client::unix(&socket).health()).await.ok()?.ok() });
        health.map(|health| Self::new(health, SystemTime::now()))
    }

    fn new(health: Health, now: SystemTime) -> Self {
        let Health { pid, started_unix_ns, keeper, processes, retention, .. } = health;
        let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let uptime = now.saturating_sub(Duration::from_nanos(started_unix_ns));
        Self {
            pid,
            uptime_s: uptime.as_secs(),
            keeper,
            processes: processes.unwrap_or_default(),
            retention,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pid, uptime_s, keeper, .. } = self;
        let seconds = format::count(*uptime_s, "second", "seconds");
        writeln!(out, "A server (pid {pid}) has been running for {seconds}.")?;
        let Some(keeper) = keeper else {
            return writeln!(out, "It has no keeper: a crash loses all its running commands.");
        };
        let crashes = format::count(keeper.restarts.into(), "time", "times");
        let worker = keeper.worker_pid;
        match &keeper.last_crash {
            Some(how) => writeln!(
                out,
                "Its worker (pid {worker}) was restarted {crashes}: the one before {how}."
            ),
            None => writeln!(out, "Its worker (pid {worker}) has not crashed."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(keeper: Option<KeeperHealth>, want: &str) {
        let report = Report { pid: 7, uptime_s: 1, keeper, processes: 0, retention: None };
        let want = format!("A server (pid 7) has been running for 1 second.\n{want}\n");
        assert_eq!(report.to_string(), want);
    }

    #[test]
    fn it_says_whether_the_worker_has_crashed_and_how() {
        let none = KeeperHealth {
            pid: 7,
            worker_pid: 8,
            worker_started_unix_ns: 0,
            restarts: 0,
            last_crash: None,
        };
        let one = Some("was killed by SIGSEGV".into());
        check(None, "It has no keeper: a crash loses all its running commands.");
        check(Some(none.clone()), "Its worker (pid 8) has not crashed.");
        check(
            Some(KeeperHealth { restarts: 2, last_crash: one, ..none }),
            "Its worker (pid 8) was restarted 2 times: the one before was killed by SIGSEGV.",
        );
    }
}
