//! Actions that read stdin.
//!
//! - `await-eof`: reads to the end and discards the input.
//! - `cat`: copies it to stdout as it arrives.
//! - `read-exactly N`: reads and discards N bytes; fails if there are fewer.
//! - `poll-stdin`, `epoll-stdin`: wait until it can be read.
//! - `epoll-stdin-twice`: waits until something comes, and until more comes, and reads nothing.
//! - `poll-stdin-and-listen`: the same, or until a client connects to a port of its own.
//! - `read-in-thread`: reads and discards it in another thread, while the first one waits.
//! - `close-stdin`: replaces the descriptor with `/dev/null`, which closes the pipe.

use std::fs::File;
use std::io;
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::thread;

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, epoll, poll};
use rustix::io::retry_on_intr;
use rustix::stdio::stdin;

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

pub(crate) fn poll_stdin(words: Words<'_>) -> io::Result<()> {
    words.done()?;
    wait_to_read(&mut [PollFd::new(&stdin(), PollFlags::IN)])
}

pub(crate) fn poll_stdin_and_listen(words: Words<'_>) -> io::Result<()> {
    words.done()?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let readable = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
    wait_to_read(&mut [readable(stdin()), readable(listener.as_fd())])
}

fn wait_to_read(files: &mut [PollFd<'_>]) -> io::Result<()> {
    Ok(retry_on_intr(|| poll(files, None)).map(drop)?)
}

pub(crate) fn epoll_stdin(words: Words<'_>) -> io::Result<()> {
    words.done()?;
    wait_for_arrivals(1)
}

pub(crate) fn epoll_stdin_twice(words: Words<'_>) -> io::Result<()> {
    words.done()?;
    wait_for_arrivals(2)
}

fn wait_for_arrivals(count: usize) -> io::Result<()> {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let arrivals = epoll::EventFlags::IN | epoll::EventFlags::ET;
    epoll::add(&epoll, stdin(), epoll::EventData::new_u64(0), arrivals)?;
    for _ in 0..count {
        let mut events = Vec::with_capacity(1);
        retry_on_intr(|| epoll::wait(&epoll, spare_capacity(&mut events), None))?;
    }
    Ok(())
}

pub(crate) fn read_in_thread(words: Words<'_>) -> io::Result<()> {
    words.done()?;
    let reader = thread::spawn(|| read(&mut [0; 1024]));
    reader.join().map_err(|_| io::Error::other("the reader panicked"))?.map(drop)
}

pub(crate) fn close_stdin(words: Words<'_>) -> io::Result<()> {
    words.done()?;
    Ok(rustix::stdio::dup2_stdin(File::open("/dev/null")?)?)
}

/// Reads without a buffer, so that no more bytes are taken from the pipe than requested.
fn read(buffer: &mut [u8]) -> io::Result<usize> {
    Ok(retry_on_intr(|| rustix::io::read(stdin(), &mut *buffer))?)
}
