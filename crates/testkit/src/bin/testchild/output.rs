//! Actions that write.
//!
//! - `print TEXT`, `eprint TEXT`: the text without a newline.
//! - `write-bytes N [out|err]`: N bytes of the pattern.
//! - `pattern-from OFFSET`: continues the pattern at OFFSET, on both streams.
//! - `flood [SECONDS]`: the pattern on stdout, forever or for SECONDS.
//! - `alternate N`: a byte to stdout, a byte to stderr, N times.
//! - `packets N [SIZE [out|err]]`: N writes of SIZE (default 10) bytes to a pipe in packet mode
//!   (`O_DIRECT`).
//! - `abort-mid-write N`: half of N bytes of the pattern on stdout, then SIGKILL to itself.
//! - `close-stdout`, `close-stderr`: replaces the descriptor with `/dev/null`, which closes the
//!   pipe.
//! - `touch FILE`: an empty file.
//! - `append FILE TEXT`: the text at the end of a file.
//!
//! The pattern continues at the number of bytes that this process has written to the stream, added
//! to the last `pattern-from`.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lastbyte_testkit::pattern_bytes;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::Signal;

use crate::signals;
use crate::words::Words;

/// The default capacity of a pipe.
const CHUNK: u64 = 64 * 1024;

pub(crate) static OUT: OutStream =
    OutStream { written: AtomicU64::new(0), fd: rustix::stdio::stdout };
pub(crate) static ERR: OutStream =
    OutStream { written: AtomicU64::new(0), fd: rustix::stdio::stderr };

/// An unbuffered stream: when an action is over, its bytes are in the pipe.
pub(crate) struct OutStream {
    written: AtomicU64,
    fd: fn() -> BorrowedFd<'static>,
}

impl OutStream {
    /// The offset of the next byte.
    pub(crate) fn offset(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Continues as if `offset` bytes had been written.
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

pub(crate) fn print(stream: &OutStream, mut words: Words<'_>) -> io::Result<()> {
    let text = words.text()?;
    words.done()?;
    stream.write(&text)
}

pub(crate) fn write_bytes(mut words: Words<'_>) -> io::Result<()> {
    let (count, stream) = (words.number("N")?, stream(&mut words)?);
    words.done()?;
    stream.write_pattern(count)
}

pub(crate) fn pattern_from(words: Words<'_>) -> io::Result<()> {
    let offset = words.only_number("OFFSET")?;
    OUT.set_offset(offset);
    ERR.set_offset(offset);
    Ok(())
}

fn stream(words: &mut Words<'_>) -> io::Result<&'static OutStream> {
    match words.word("out or err").ok() {
        Some(name) if name == "err" => Ok(&ERR),
        Some(name) if name != "out" => Err(io::Error::other("a stream is out or err")),
        _ => Ok(&OUT),
    }
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

pub(crate) fn alternate(words: Words<'_>) -> io::Result<()> {
    let count: u64 = words.only_number("N")?;
    for _ in 0..count {
        OUT.write_pattern(1)?;
        ERR.write_pattern(1)?;
    }
    Ok(())
}

pub(crate) fn packets(mut words: Words<'_>) -> io::Result<()> {
    let count: u64 = words.number("N")?;
    let size = if words.is_empty() { 10 } else { words.number("SIZE")? };
    let stream = stream(&mut words)?;
    words.done()?;
    let flags = fcntl_getfl((stream.fd)())?;
    fcntl_setfl((stream.fd)(), flags | OFlags::DIRECT)?;
    (0..count).try_for_each(|_| stream.write_pattern(size))
}

pub(crate) fn abort_mid_write(words: Words<'_>) -> io::Result<()> {
    let count: u64 = words.only_number("N")?;
    OUT.write_pattern(count / 2)?;
    signals::die_of(Signal::KILL)
}

pub(crate) fn touch(mut words: Words<'_>) -> io::Result<()> {
    let file = words.word("FILE")?;
    words.done()?;
    File::create(file).map(drop)
}

pub(crate) fn append(mut words: Words<'_>) -> io::Result<()> {
    let file = words.word("FILE")?;
    let text = words.text()?;
    words.done()?;
    File::options().append(true).create(true).open(file)?.write_all(&text)
}

pub(crate) fn close_stdout(words: Words<'_>) -> io::Result<()> {
    words.done()?;
    Ok(rustix::stdio::dup2_stdout(File::create("/dev/null")?)?)
}

pub(crate) fn close_stderr(words: Words<'_>) -> io::Result<()> {
    words.done()?;
    Ok(rustix::stdio::dup2_stderr(File::create("/dev/null")?)?)
}
