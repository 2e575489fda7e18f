//! One call of a tool: whose it is, whether it is still wanted, and its answer.

use std::sync::Arc;
use std::time::Duration;

use lastbyte_engine::{Filter, LogSource, Process, Snapshot};
use lastbyte_output::views::Source;
use lastbyte_wire::{self as wire, Error, ErrorCode};
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::RequestContext;
use rmcp::{Peer, RoleServer};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::abandoned::Abandoned;
use super::client::Client;
use super::facts;
use super::reply::{Budget, excerpt};
use crate::verbs::select::Finder;
use crate::verbs::{list, long_read};
use crate::{App, to_wire};

/// What a tool answers: blocks of text.
pub(super) type Answer = Result<Vec<String>, Stopped>;

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Stopped {
    Refused(Error),
    /// Nobody wants it any more.
    Cancelled,
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

/// Some clients give up on a call that says nothing for long.
const PROGRESS: Duration = Duration::from_secs(10);
/// How much of a log an answer may have to read.
const READ_AT_MOST: u64 = 16 << 20;
/// How many cancelled calls one answer names.
const MOST_NOTES: usize = 5;

#[derive(Debug)]
pub(super) struct Call {
    pub(super) client: Client,
    pub(super) context: RequestContext<RoleServer>,
    pub(super) abandoned: Arc<Abandoned>,
}

impl Call {
    pub(super) fn app(&self) -> &App {
        &self.client.app
    }

    /// Waits for processes, telling the client so, until nobody wants to know. They go on then, and the
    /// next answer says so.
    pub(super) async fn until<T>(
        &self,
        processes: &[Process],
        waiting: impl Future<Output = T>,
    ) -> Result<T, Stopped> {
        tokio::select! {
            done = waiting => Ok(done),
            () = self.context.ct.cancelled() => {
                let session = self.app().session();
                processes.iter().for_each(|process| self.abandoned.add(session, process.id()));
                Err(Stopped::Cancelled)
            }
            never = self.tell_progress(processes) => match never {},
        }
    }

    async fn tell_progress(&self, processes: &[Process]) -> std::convert::Infallible {
        let Some(token) = self.context.meta.get_progress_token() else {
            return std::future::pending().await;
        };
        let begun = Instant::now();
        let mut ticks = interval_at(begun + PROGRESS, PROGRESS);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let total: u64 = processes.iter().map(|process| process.snapshot().extent.len).sum();
            let message = format!("still running, {total} bytes of output");
            tell(&self.context.peer, &token, begun.elapsed(), message).await;
        }
    }

    /// The process that a name, an id, a part of one or a pid stands for.
    pub(super) fn find(&self, given: &str) -> Result<Process, Error> {
        let by_pid = given.parse().ok().and_then(|pid| self.with_pid(pid));
        match by_pid {
            Some(process) => Ok(process),
            None => Finder::new(self.app()).find(given),
        }
    }

    /// The newest with this leader.
    fn with_pid(&self, pid: i32) -> Option<Process> {
        let within = Filter { within: self.app().session().cloned(), ..Filter::default() };
        let all = self.app().engine.list(&within, None, usize::MAX).processes;
        all.into_iter().map(|(process, _)| process).find(|process| process.pid() == pid)
    }

    /// Lines for what cancelled calls have left running.
    pub(super) fn notes(&self) -> Vec<String> {
        let ids = self.abandoned.take(self.app().session());
        let processes = ids.into_iter().filter_map(|id| self.app().process(&id.to_string()));
        let running = processes.filter(|process| process.snapshot().ending().is_none());
        let note = |process: Process| {
            format!("note: the cancelled call left process {} running", process.id())
        };
        running.take(MOST_NOTES).map(note).collect()
    }

    /// The facts, and the output from an offset within what is left of the budget.
    pub(super) async fn evidence(
        &self,
        process: &Process,
        snapshot: Snapshot,
        from: u64,
        (budget, lead): (Budget, Vec<String>),
    ) -> Answer {
        let header = self.header(process, &snapshot, lead).await;
        let id = process.id().to_string();
        let end = snapshot.extent.len;
        let room = budget.bytes().saturating_sub(header.len());
        let shown =
            self.read(process, snapshot, move |source| excerpt(source, from..end, room, &id));
        let shown = shown.await?;
        Ok(vec![with_output(header, &shown)])
    }

    /// What is known of a process, before its output.
    pub(super) async fn header(
        &self,
        process: &Process,
        snapshot: &Snapshot,
        lead: Vec<String>,
    ) -> String {
        let known = to_wire::process(process, snapshot);
        let mut lines = self.notes();
        lines.push(facts::headline(&known));
        lines.extend(lead);
        lines.push(facts::output(&known));
        if known.ending.is_some() {
            let left = list::survivors(process).await;
            lines.extend(facts::survivors(&known, &left));
        } else {
            lines.push(next_for_running(&known));
        }
        lines.join("\n") + "\n\n"
    }

    /// Reads a log off the runtime.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        process: &Process,
        snapshot: Snapshot,
        read: impl FnOnce(&dyn Source) -> std::io::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        let bytes = snapshot.extent.len.min(READ_AT_MOST);
        let source = LogSource::all(process.reader(), snapshot);
        long_read::in_turn(self.app(), process, (source, bytes), read).await
    }
}

/// A header, and what follows it.
pub(super) fn with_output(header: String, shown: &str) -> String {
    if shown.is_empty() { header + "(no output)" } else { header + shown }
}

fn next_for_running(process: &wire::Process) -> String {
    let (id, total) = (&process.id, process.total);
    format!(
        "next: wait {{\"process_ids\":[\"{id}\"]}} waits for its end; later output starts at \
         offset {total}"
    )
}

async fn tell(peer: &Peer<RoleServer>, token: &ProgressToken, time: Duration, message: String) {
    let progress = ProgressNotificationParam::new(token.clone(), time.as_secs() as f64);
    // A client that is gone is noticed by its cancellation.
    _ = peer.notify_progress(progress.with_message(message)).await;
}

/// Nothing was written or read: the tool of this name is not known.
pub(super) fn no_tool(name: &str, names: &str) -> Error {
    Error::new(ErrorCode::InvalidRequest, format!("unknown tool {name:?}"))
        .hint(format!("the tools are {names}"))
}
