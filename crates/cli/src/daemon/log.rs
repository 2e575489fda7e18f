//! The daemon's log, on standard error.
//!
//! Written by its own thread: with a slow or missing reader lines are lost, but the daemon never
//! blocks.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use rustix::stdio::stderr;
use tracing::{Level, Metadata};
use tracing_subscriber::filter::{LevelFilter, filter_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use super::supervisor;
use crate::{colour, print, stdio};

/// Lines that wait to be written; some hundred KiB.
const WAITING: usize = 1024;
/// How long the last lines have at the end.
const PATIENCE: Duration = Duration::from_secs(1);
/// Lines that come within this time of one another are written together: to wake the writer for
/// each would cost every request some microseconds.
const TOGETHER: Duration = Duration::from_millis(5);

/// The log from its beginning to its end.
#[derive(Debug)]
pub(crate) struct Log {
    entries: SyncSender<LogEntry>,
}

#[derive(Debug)]
enum LogEntry {
    Line(Vec<u8>),
    /// Answered when everything before it is written.
    Flush(SyncSender<()>),
}

/// The log level.
pub(crate) fn parse(given: &str) -> Result<LevelFilter, String> {
    let known = ["error", "warn", "info", "debug", "off"].contains(&given);
    let level = given.parse().ok().filter(|_| known);
    level.ok_or_else(|| "expected error, warn, info, debug or off".into())
}

/// Puts the time before each message for people, which is in the log from now on: until a server is ready,
/// its messages are answers to its caller. A person at a terminal sees when a message comes, and systemd's
/// journal adds the time itself.
pub(crate) fn show_times_of_messages() {
    if !io::stderr().is_terminal() && !supervisor::stderr_is_journal() {
        print::show_times();
    }
}

impl Log {
    /// From now on log events go to standard error: as text on a terminal, else as lines of JSON.
    pub(crate) fn start(level: LevelFilter) -> io::Result<Self> {
        let (entries, waiting) = sync_channel(WAITING);
        let lines = Arc::new(LogLines { entries: entries.clone(), lost: AtomicU64::new(0) });
        thread::Builder::new().name("log".into()).spawn(move || write_all(&waiting))?;
        // It would print its own errors, and printing to a closed stderr panics.
        let log = tracing_subscriber::fmt().with_max_level(level).log_internal_errors(false);
        if io::stderr().is_terminal() {
            let log = log.with_ansi(colour::is_on(stderr())).with_writer(lines).finish();
            log.with(filter_fn(is_ours)).init();
        } else {
            let log = log.json().flatten_event(true).with_writer(lines).finish();
            log.with(filter_fn(is_ours)).init();
        }
        Ok(Self { entries })
    }

    /// Waits, not for long, until everything is written.
    pub(crate) fn finish(self) {
        let (done, is_done) = sync_channel(1);
        if self.entries.try_send(LogEntry::Flush(done)).is_ok() {
            // A reader that is slower than this loses the rest.
            _ = is_done.recv_timeout(PATIENCE);
        }
    }
}

/// All but what rmcp tells of each request, which may quote what an agent types.
fn is_ours(event: &Metadata<'_>) -> bool {
    !event.target().starts_with("rmcp") || *event.level() == Level::ERROR
}

#[expect(clippy::disallowed_methods, reason = "time is the subject: what comes is gathered")]
fn write_all(entries: &Receiver<LogEntry>) {
    while let Ok(first) = entries.recv() {
        std::iter::once(first).chain(entries.try_iter()).for_each(write);
        thread::sleep(TOGETHER);
    }
}

fn write(entry: LogEntry) {
    match entry {
        // A failure to log cannot be logged.
        LogEntry::Line(line) => _ = stdio::write_all(stderr(), &line),
        LogEntry::Flush(done) => _ = done.send(()), // it may have stopped waiting
    }
}

/// Takes lines without ever waiting.
#[derive(Debug)]
struct LogLines {
    entries: SyncSender<LogEntry>,
    lost: AtomicU64,
}

impl LogLines {
    fn take(&self, line: &[u8]) {
        let lost = self.lost.swap(0, Ordering::Relaxed);
        if self.entries.try_send(LogEntry::Line(line.to_vec())).is_err() {
            self.lost.fetch_add(lost + 1, Ordering::Relaxed);
        } else if lost > 0 {
            let text = format!("{{\"level\":\"WARN\",\"lost_lines\":{lost}}}\n");
            if self.entries.try_send(LogEntry::Line(text.into_bytes())).is_err() {
                self.lost.fetch_add(lost, Ordering::Relaxed);
            }
        }
    }
}

/// A line comes in one write.
impl Write for &LogLines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.take(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_one_of_five_words() {
        assert_eq!(parse("off"), Ok(LevelFilter::OFF));
        assert_eq!(parse("debug"), Ok(LevelFilter::DEBUG));
        assert_eq!(parse("DEBUG"), Err("expected error, warn, info, debug or off".into()));
    }

    #[test]
    fn lines_that_nobody_takes_are_counted_and_told_of() {
        let (entries, waiting) = sync_channel(2);
        let lines = LogLines { entries, lost: AtomicU64::new(0) };
        for line in [b"1", b"2", b"3", b"4"] {
            lines.take(line);
        }
        let next = || match waiting.try_recv() {
            Ok(LogEntry::Line(line)) => String::from_utf8(line).unwrap(),
            Ok(LogEntry::Flush(_)) | Err(_) => String::new(),
        };
        assert_eq!([next(), next(), next()], ["1", "2", ""]);
        lines.take(b"5");
        assert_eq!(next(), "5");
        assert_eq!(next(), "{\"level\":\"WARN\",\"lost_lines\":2}\n");
    }
}
