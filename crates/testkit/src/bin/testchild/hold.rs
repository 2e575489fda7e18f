//! Actions that wait, listen, take memory or exit.
//!
//! - `hold`: waits until the anchor goes away, then exits with 0. Without an anchor in
//!   `TESTCHILD_ANCHOR` it waits one minute.
//! - `join`: connects to the anchor and continues.
//! - `chatter MS FROM`: holds, and writes a byte of the pattern every MS, from offset FROM on.
//! - `sleep-ms N`: waits N milliseconds.
//! - `listen PORT`: listens on this port of 127.0.0.1 from now on and never accepts.
//! - `exit N`.
//!
//! While it holds, a process performs the actions that the anchor sends, one per line.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use lastbyte_testkit::ANCHOR_VARIABLE;
use rustix::event::{PollFd, PollFlags, Timespec};

use crate::action;
use crate::output::OUT;
use crate::words::Words;

/// How long a helper holds without an anchor.
const WITHOUT_ANCHOR: Duration = Duration::from_secs(60);

pub(crate) fn hold(words: Words<'_>) -> io::Result<()> {
    words.done()?;
    match connection()? {
        Some(anchor) => loop {
            wait(Some(&anchor), None)?;
        },
        None => {
            wait(None, Some(Instant::now() + WITHOUT_ANCHOR))?;
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
    let end = anchor.is_none().then(|| Instant::now() + WITHOUT_ANCHOR);
    while end.is_none_or(|end| Instant::now() < end) {
        OUT.write_pattern(1)?;
        wait(anchor.as_ref(), Some(Instant::now() + period))?;
    }
    Ok(())
}

pub(crate) fn sleep_ms(words: Words<'_>) -> io::Result<()> {
    let duration = Duration::from_millis(words.only_number("N")?);
    wait(None, Some(Instant::now() + duration))
}

pub(crate) fn listen(mut words: Words<'_>) -> io::Result<()> {
    /// Open until the process exits.
    static LISTENERS: Mutex<Vec<TcpListener>> = Mutex::new(Vec::new());
    let port: u16 = words.number("PORT")?;
    words.done()?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    LISTENERS.lock().unwrap_or_else(PoisonError::into_inner).push(listener);
    Ok(())
}

pub(crate) fn exit(words: Words<'_>) -> io::Result<()> {
    std::process::exit(words.only_number("N")?)
}

/// The one connection of this process to its anchor, made on first use; `None` without the variable.
///
/// The anchor confirms the connection with a byte. If it does not, it is gone, and the process
/// exits.
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

/// Waits until `deadline`, or until the anchor sends something, and then performs it.
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

/// Performs the actions that the anchor has sent, or exits if it is gone.
fn obey(anchor: &UnixStream) -> io::Result<()> {
    // The anchor writes whole lines, so no partial line is left in the buffer.
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
