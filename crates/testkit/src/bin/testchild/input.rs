//! Actions that read stdin.
//!
//! - `await-eof`: reads to the end and discards the input.
//! - `cat`: copies it to stdout as it arrives.
//! - `read-exactly N`: reads and discards N bytes; fails if there are fewer.
//! - `close-stdin`: replaces the descriptor with `/dev/null`, which closes the pipe.

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
    while let count @ 1.. = read(&mut buffer)? {
        OUT.write(&buffer[..count])?;
    }
    Ok(())
}

pub(crate) fn read_exactly(words: Words<'_>) -> io::Result<()> {
    let mut missing: usize = words.only_number("N")?;
    let mut buffer = [0; 64 * 1024];
    while missing > 0 {
        let size = missing.min(buffer.len());
        match read(&mut buffer[..size])? {
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

/// Reads without a buffer, so that no more bytes are taken from the pipe than requested.
fn read(buffer: &mut [u8]) -> io::Result<usize> {
    Ok(rustix::io::retry_on_intr(|| rustix::io::read(rustix::stdio::stdin(), &mut *buffer))?)
}
