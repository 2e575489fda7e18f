//! Actions that write.
//!
//! - `print TEXT`, `eprint TEXT`: the text alone, no newline added.
//! - `write-bytes N [out|err]`: N bytes of the pattern.
//! - `flood [SECONDS]`: the pattern on stdout, for ever or for so long.
//! - `alternate N`: a byte to stdout, a byte to stderr, N times.
//! - `packets N`: N writes of ten bytes to a stdout that gives them out one by one (`O_DIRECT`).
//! - `abort-mid-write N`: half of N bytes of the pattern on stdout, then SIGKILL to itself.
//! - `close-stdout`, `close-stderr`: the descriptor becomes `/dev/null`, so the pipe is let go.
//!
//! A pattern byte is that of its offset in what this process wrote to the stream.

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lastbyte_testkit::pattern_bytes;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::Signal;

use crate::signals;
use crate::words::Words;

/// As much as a pipe takes at once.
const CHUNK: u64 = 64 * 1024;

pub(crate) static OUT: Stream = Stream { written: AtomicU64::new(0), fd: rustix::stdio::stdout };
pub(crate) static ERR: Stream = Stream { written: AtomicU64::new(0), fd: rustix::stdio::stderr };

/// One of the two streams, without a buffer: a byte is in the pipe when its action is over.
pub(crate) struct Stream {
    written: AtomicU64,
    fd: fn() -> BorrowedFd<'static>,
}

impl Stream {
    /// The offset of the next byte.
    pub(crate) fn offset(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Goes on as if `offset` bytes had been written.
    pub(crate) fn set_offset(&self, offset: u64) {
        self.written.store(offset, Ordering::Relaxed);
    }

    pub(crate) fn write(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match rustix::io::write((self.fd)(), bytes) {
                Ok(count) => {
                    bytes = &bytes[count..];
                    self.written.fetch_add(count as u64, Ordering::Relaxed);
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::PIPE) => signals::die_of(Signal::PIPE)?,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Writes the next `count` bytes of the pattern, a chunk at a time.
    pub(crate) fn write_pattern(&self, count: u64) -> io::Result<()> {
        let end = self.offset() + count;
        while self.offset() < end {
            let from = self.offset();
            self.write(&pattern_bytes(from..end.min(from + CHUNK)))?;
        }
        Ok(())
    }
}

pub(crate) fn print(mut words: Words<'_>) -> io::Result<()> {
    let text = words.text()?;
    words.done()?;
    OUT.write(&text)
}

pub(crate) fn eprint(mut words: Words<'_>) -> io::Result<()> {
    let text = words.text()?;
    words.done()?;
    ERR.write(&text)
}

pub(crate) fn write_bytes(mut words: Words<'_>) -> io::Result<()> {
    let count = words.number("N")?;
    let stream = match words.word("out or err").ok() {
        None => &OUT,
        Some(name) if name == "out" => &OUT,
        Some(name) if name == "err" => &ERR,
        Some(_) => return Err(io::Error::other("a stream is out or err")),
    };
    words.done()?;
    stream.write_pattern(count)
}

pub(crate) fn flood(mut words: Words<'_>) -> io::Result<()> {
    let seconds = if words.is_empty() { None } else { Some(words.number("SECONDS")?) };
    words.done()?;
    let deadline = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    while deadline.is_none_or(|deadline| Instant::now() < deadline) {
        OUT.write_pattern(CHUNK)?;
    }
    Ok(())
}

pub(crate) fn alternate(mut words: Words<'_>) -> io::Result<()> {
    let count: u64 = words.number("N")?;
    words.done()?;
    for _ in 0..count {
        OUT.write_pattern(1)?;
        ERR.write_pattern(1)?;
    }
    Ok(())
}

pub(crate) fn packets(mut words: Words<'_>) -> io::Result<()> {
    let count: u64 = words.number("N")?;
    words.done()?;
    let flags = fcntl_getfl(rustix::stdio::stdout())?;
    fcntl_setfl(rustix::stdio::stdout(), flags | OFlags::DIRECT)?;
    (0..count).try_for_each(|_| OUT.write_pattern(10))
}

pub(crate) fn abort_mid_write(mut words: Words<'_>) -> io::Result<()> {
    let count: u64 = words.number("N")?;
    words.done()?;
    OUT.write_pattern(count / 2)?;
    signals::die_of(Signal::KILL)
}

pub(crate) fn close_stdout(words: Words<'_>) -> io::Result<()> {
    words.done()?;
    Ok(rustix::stdio::dup2_stdout(File::create("/dev/null")?)?)
}

pub(crate) fn close_stderr(words: Words<'_>) -> io::Result<()> {
    words.done()?;
    Ok(rustix::stdio::dup2_stderr(File::create("/dev/null")?)?)
}
