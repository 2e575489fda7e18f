//! Actions that wait, and the exit.
//!
//! - `hold`: waits until the anchor goes away, then exits with 0. Without an anchor in
//!   `TESTCHILD_ANCHOR` it waits a minute.
//! - `join`: holds on to the anchor from here on, and goes on.
//! - `chatter MS FROM`: holds, and writes a byte of the pattern each MS, beginning at offset FROM.
//! - `sleep-ms N`: waits so long.
//! - `exit N`.
//!
//! Whoever holds on also does what the anchor tells it: a line is an action and its argument.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use lastbyte_testkit::ANCHOR_VARIABLE;
use rustix::event::{PollFd, PollFlags, Timespec};

use crate::action;
use crate::output::OUT;
use crate::words::Words;

/// How long a helper holds when nobody gave it an anchor.
const WITHOUT_AN_ANCHOR: Duration = Duration::from_secs(60);

pub(crate) fn hold(words: Words<'_>) -> io::Result<()> {
    words.done()?;
    match connection()? {
        Some(anchor) => loop {
            wait(Some(&anchor), None)?;
        },
        None => {
            wait(None, Some(Instant::now() + WITHOUT_AN_ANCHOR))?;
            std::process::exit(0);
        }
    }
}

pub(crate) fn join(words: Words<'_>) -> io::Result<()> {
    words.done()?;
    connection().map(drop)
}

pub(crate) fn chatter(mut words: Words<'_>) -> io::Result<()> {
    let period = Duration::from_millis(words.number("MS")?);
    OUT.set_offset(words.number("FROM")?);
    words.done()?;
    let anchor = connection()?;
    let end = anchor.is_none().then(|| Instant::now() + WITHOUT_AN_ANCHOR);
    while end.is_none_or(|end| Instant::now() < end) {
        OUT.write_pattern(1)?;
        wait(anchor.as_ref(), Some(Instant::now() + period))?;
    }
    Ok(())
}

pub(crate) fn sleep_ms(mut words: Words<'_>) -> io::Result<()> {
    let duration = Duration::from_millis(words.number("N")?);
    words.done()?;
    wait(None, Some(Instant::now() + duration))
}

pub(crate) fn exit(mut words: Words<'_>) -> io::Result<()> {
    let code = words.number("N")?;
    words.done()?;
    std::process::exit(code)
}

/// The process's one connection to its anchor, made at the first need; none without a variable.
///
/// It counts once the anchor has welcomed it with a byte. An anchor that does not is an anchor
/// that is gone, and so the process ends.
pub(crate) fn connection() -> io::Result<Option<UnixStream>> {
    static ANCHOR: Mutex<Option<UnixStream>> = Mutex::new(None);
    let mut anchor = ANCHOR.lock().unwrap_or_else(PoisonError::into_inner);
    if anchor.is_none() {
        let Some(path) = std::env::var_os(ANCHOR_VARIABLE) else { return Ok(None) };
        let welcomed = UnixStream::connect(path).and_then(|mut stream| {
            stream.read_exact(&mut [0])?;
            Ok(stream)
        });
        *anchor = Some(welcomed.unwrap_or_else(|_| std::process::exit(0)));
    }
    anchor.as_ref().map(UnixStream::try_clone).transpose()
}

/// Waits until `deadline`, or until the anchor says something, and then obeys it.
fn wait(anchor: Option<&UnixStream>, deadline: Option<Instant>) -> io::Result<()> {
    let mut polled: Vec<PollFd<'_>> =
        anchor.iter().map(|anchor| PollFd::new(anchor, PollFlags::IN)).collect();
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let timeout = left.map(|left| Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(left.subsec_nanos()),
        });
        match rustix::event::poll(&mut polled, timeout.as_ref()) {
            Ok(0) => return Ok(()),
            Ok(_) => return anchor.map_or(Ok(()), obey),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Performs what the anchor has sent, or exits if it is gone.
fn obey(anchor: &UnixStream) -> io::Result<()> {
    // The anchor writes a line at once, so a read that begins with one ends with one: nothing
    // is left behind in the buffer.
    let mut lines = BufReader::new(anchor);
    loop {
        let mut line = String::new();
        if lines.read_line(&mut line).unwrap_or(0) == 0 {
            std::process::exit(0);
        }
        let words: Vec<OsString> = line.trim_end().splitn(2, ' ').map(Into::into).collect();
        action::perform(&words)?;
        if lines.buffer().is_empty() {
            return Ok(());
        }
    }
}
