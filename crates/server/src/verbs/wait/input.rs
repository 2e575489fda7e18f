//! The condition that a process waits for input.

use std::time::Duration;

use lastbyte_engine::{InputKind, InputReader, InputState, Process, Snapshot};
use lastbyte_wire::{self as wire, InputUnknown, Met};
use tokio::time::Instant;

/// When the processes are looked at next, and what was seen last.
#[derive(Debug, Clone)]
pub(super) struct InputCondition {
    pub(super) next_look: Instant,
    /// The length of the log, and since when it is this.
    quiet: Option<(u64, Instant)>,
    reader: Option<Candidate>,
    unknown: Option<InputUnknown>,
}

/// A process that waits for input, as far as one look can tell.
#[derive(Debug, Clone)]
struct Candidate {
    pid: i32,
    log_len: u64,
    seen: Instant,
}

/// What a look has found.
#[derive(Debug)]
pub(super) enum Looked {
    Met(Met),
    NotYet,
    /// It cannot be met any more.
    Never,
}

/// How often is looked, soon after the last output and long after it: the kernel does not report
/// what a process waits for, and a look costs time for every process of the tree.
const INTERVAL: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(250));

/// How long a process has to read, with no output, until it counts: some look at their input for a
/// moment only.
const SETTLED: Duration = Duration::from_millis(100);

impl InputCondition {
    pub(super) fn new() -> Self {
        Self { next_look: Instant::now(), quiet: None, reader: None, unknown: None }
    }

    /// The process that could not be looked at the last time.
    pub(super) fn unknown(&self) -> Option<InputUnknown> {
        self.unknown.clone()
    }

    pub(super) async fn look(&mut self, process: &Process, snapshot: &Snapshot) -> Looked {
        if snapshot.ending().is_some() {
            return Looked::Never;
        }
        let (now, log_len) = (Instant::now(), snapshot.extent.len);
        if now < self.next_look {
            return Looked::NotYet;
        }
        let (_, quiet_since) = *self
            .quiet
            .insert(self.quiet.filter(|(len, _)| *len == log_len).unwrap_or((log_len, now)));
        let state = process.needs_input().await;
        self.next_look = now + interval(now - quiet_since);
        // What came meanwhile may be more than a prompt.
        let is_quiet = process.snapshot().extent.len == log_len;
        let last = self.reader.take().filter(|last| last.log_len == log_len && is_quiet);
        self.unknown = None;
        match state {
            InputState::Needed(reader) => {
                let pid = reader.pid;
                match last.filter(|last| last.pid == pid) {
                    Some(last) if now - last.seen >= SETTLED => return Looked::Met(met(reader)),
                    Some(last) => self.wait_for(last),
                    None => self.wait_for(Candidate { pid, log_len, seen: now }),
                }
            }
            InputState::NotNeeded => {}
            InputState::Unknown { pid, name } => self.unknown = Some(InputUnknown { pid, name }),
            InputState::Never => return Looked::Never,
        }
        Looked::NotYet
    }

    fn wait_for(&mut self, candidate: Candidate) {
        self.next_look = candidate.seen + SETTLED;
        self.reader = Some(candidate);
    }
}

fn interval(quiet: Duration) -> Duration {
    (quiet / 8).clamp(INTERVAL.0, INTERVAL.1)
}

fn met(InputReader { pid, name, kind, secret }: InputReader) -> Met {
    let on = match kind {
        InputKind::Terminal => wire::InputKind::Terminal,
        InputKind::Pipe => wire::InputKind::Pipe,
    };
    Met::NeedsInput { pid, name, on, secret }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_is_silent_for_long_is_looked_at_less_often() {
        let check = |quiet: u64, want: u64| {
            assert_eq!(interval(Duration::from_millis(quiet)), Duration::from_millis(want));
        };
        check(0, 50);
        check(400, 50);
        check(800, 100);
        check(3_600_000, 250);
    }
}
