//! What the daemon tells of itself, on standard error.
//!
//! A thread of its own writes it: a reader that is slow, or gone, costs lines and never the daemon.

use std::env;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use rustix::stdio::stderr;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;

use crate::own_streams;

/// Lines that wait to be written; some hundred KiB.
const WAITING: usize = 1024;
/// How long the last lines have at the end.
const PATIENCE: Duration = Duration::from_secs(1);

/// The log from its beginning to its end.
#[derive(Debug)]
pub(crate) struct Log {
    entries: SyncSender<Entry>,
}

#[derive(Debug)]
enum Entry {
    Line(Vec<u8>),
    /// Answered when everything before it is written.
    Flush(SyncSender<()>),
}

/// How much is told.
pub(crate) fn parse(given: &str) -> Result<LevelFilter, String> {
    match given {
        "off" => Ok(LevelFilter::OFF),
        "error" => Ok(LevelFilter::ERROR),
        "warn" => Ok(LevelFilter::WARN),
        "info" => Ok(LevelFilter::INFO),
        "debug" => Ok(LevelFilter::DEBUG),
        _ => Err("a level is error, warn, info, debug or off".into()),
    }
}

impl Log {
    /// From now on everything that is told goes to standard error: for people on a terminal, else
    /// as lines of JSON.
    pub(crate) fn start(level: LevelFilter) -> io::Result<Self> {
        let (entries, waiting) = sync_channel(WAITING);
        let lines = Lines { entries: entries.clone(), lost: AtomicU64::new(0) };
        thread::Builder::new().name("log".into()).spawn(move || write_all(&waiting))?;
        // Errors of its own it would print, and a print to nobody is a panic.
        let log = tracing_subscriber::fmt().with_max_level(level).log_internal_errors(false);
        if io::stderr().is_terminal() {
            let coloured = env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
            log.with_ansi(coloured).with_writer(lines).init();
        } else {
            log.json().flatten_event(true).with_writer(lines).init();
        }
        Ok(Self { entries })
    }

    /// Waits, not for long, until everything is written.
    pub(crate) fn finish(self) {
        let (done, is_done) = sync_channel(1);
        if self.entries.try_send(Entry::Flush(done)).is_ok() {
            // Whoever does not read in this time has lost the rest.
            _ = is_done.recv_timeout(PATIENCE);
        }
    }
}

fn write_all(entries: &Receiver<Entry>) {
    for entry in entries {
        match entry {
            // There is nobody to tell that nobody listens.
            Entry::Line(line) => _ = own_streams::write_all(stderr(), &line),
            Entry::Flush(done) => _ = done.send(()), // it may have stopped waiting
        }
    }
}

/// Takes lines without ever waiting.
#[derive(Debug)]
struct Lines {
    entries: SyncSender<Entry>,
    lost: AtomicU64,
}

impl Lines {
    fn take(&self, line: &[u8]) {
        let lost = self.lost.swap(0, Ordering::Relaxed);
        if self.entries.try_send(Entry::Line(line.to_vec())).is_err() {
            self.lost.fetch_add(lost + 1, Ordering::Relaxed);
        } else if lost > 0 {
            let text = format!("{{\"level\":\"WARN\",\"lost_lines\":{lost}}}\n");
            if self.entries.try_send(Entry::Line(text.into_bytes())).is_err() {
                self.lost.fetch_add(lost, Ordering::Relaxed);
            }
        }
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = LineWriter<'a>;

    fn make_writer(&'a self) -> LineWriter<'a> {
        LineWriter(self)
    }
}

/// A line comes in one write.
#[derive(Debug)]
struct LineWriter<'a>(&'a Lines);

impl Write for LineWriter<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.take(line);
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
        assert_eq!(parse("DEBUG"), Err("a level is error, warn, info, debug or off".into()));
    }

    #[test]
    fn lines_that_nobody_takes_are_counted_and_told_of() {
        let (entries, waiting) = sync_channel(2);
        let lines = Lines { entries, lost: AtomicU64::new(0) };
        for line in [b"1", b"2", b"3", b"4"] {
            lines.take(line);
        }
        let next = || match waiting.try_recv() {
            Ok(Entry::Line(line)) => String::from_utf8(line).unwrap(),
            Ok(Entry::Flush(_)) | Err(_) => String::new(),
        };
        assert_eq!([next(), next(), next()], ["1", "2", ""]);
        lines.take(b"5");
        assert_eq!(next(), "5");
        assert_eq!(next(), "{\"level\":\"WARN\",\"lost_lines\":2}\n");
    }
}
