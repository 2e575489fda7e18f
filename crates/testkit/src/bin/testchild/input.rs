//! Actions that read stdin.
//!
//! - `await-eof`: reads to the end and throws it away.
//! - `cat`: copies it to stdout as it comes.
//! - `read-exactly N`: N bytes, thrown away; fails if there are fewer.
//! - `close-stdin`: the descriptor becomes `/dev/null`, so the pipe is let go.

use std::fs::File;
use std::io;

use crate::output::OUT;
use crate::words::Words;

pub(crate) fn await_eof(words: Words<'_>) -> io::Result<()> {
    words.done()?;
    let mut buffer = [0; 64 * 1024];
    while read(&mut buffer)? > 0 {}
    Ok(())
}

pub(crate) fn cat(words: Words<'_>) -> io::Result<()> {
    words.done()?;
    let mut buffer = [0; 64 * 1024];
    loop {
        match read(&mut buffer)? {
            0 => return Ok(()),
            count => OUT.write(&buffer[..count])?,
        }
    }
}

pub(crate) fn read_exactly(mut words: Words<'_>) -> io::Result<()> {
    let mut missing: usize = words.number("N")?;
    words.done()?;
    let mut buffer = [0; 64 * 1024];
    while missing > 0 {
        let at_most = missing.min(buffer.len());
        match read(&mut buffer[..at_most])? {
            0 => return Err(io::Error::other(format!("stdin ended {missing} bytes early"))),
            count => missing -= count,
        }
    }
    Ok(())
}

pub(crate) fn close_stdin(words: Words<'_>) -> io::Result<()> {
    words.done()?;
    Ok(rustix::stdio::dup2_stdin(File::open("/dev/null")?)?)
}

/// Reads without a buffer, so that not one byte more is taken from the pipe than was asked for.
fn read(buffer: &mut [u8]) -> io::Result<usize> {
    Ok(rustix::io::retry_on_intr(|| rustix::io::read(rustix::stdio::stdin(), &mut *buffer))?)
}
