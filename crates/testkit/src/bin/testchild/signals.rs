//! Actions about signals.
//!
//! - `ignore SIGNAL…`: catches them and does nothing. Unlike SIG_IGN this is not inherited.
//! - `trap SIGNAL exit N`, `trap SIGNAL print TEXT`: exits or prints on each such signal.
//! - `kill-self SIGNAL`: sends it to itself; it kills even if the Rust runtime handles it.
//! - `stop-self`: connects to the anchor, then SIGSTOP. The anchor continues it when dropped.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustix::process::Signal;

use crate::words::Words;
use crate::{action, hold};

pub(crate) fn ignore(mut words: Words<'_>) -> io::Result<()> {
    while !words.is_empty() {
        let signal = catchable(words.number("SIGNAL")?)?;
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    Ok(())
}

pub(crate) fn trap(mut words: Words<'_>) -> io::Result<()> {
    let signal = catchable(words.number("SIGNAL")?)?;
    let name = words.word("exit or print")?.to_owned();
    if name != "exit" && name != "print" {
        return Err(io::Error::other("a trap can exit or print"));
    }
    let response = [name, words.word("N or TEXT")?.to_owned()];
    words.done()?;
    let mut arrivals = arrivals_of(signal)?;
    std::thread::spawn(move || {
        // A signal during the response is handled after it: its byte stays in the pipe.
        while arrivals.read_exact(&mut [0]).is_ok() {
            if action::perform(&response).is_err() {
                std::process::exit(120);
            }
        }
    });
    Ok(())
}

pub(crate) fn kill_self(words: Words<'_>) -> io::Result<()> {
    let number: i32 = words.only_number("SIGNAL")?;
    match Signal::from_named_raw(number) {
        Some(signal @ (Signal::PIPE | Signal::SEGV | Signal::BUS)) => die_of(signal),
        Some(signal) => send_to_self(signal),
        None => Err(io::Error::other(format!("{number} is not a signal"))),
    }
}

pub(crate) fn stop_self(words: Words<'_>) -> io::Result<()> {
    words.done()?;
    hold::connection()?;
    send_to_self(Signal::STOP)
}

/// Dies of `signal` even if the Rust runtime ignores or catches it.
pub(crate) fn die_of(signal: Signal) -> io::Result<()> {
    signal_hook::low_level::emulate_default_handler(signal.as_raw())
}

/// A stream that receives a byte for each `signal`.
pub(crate) fn arrivals_of(signal: i32) -> io::Result<UnixStream> {
    let (arrivals, handler_end) = UnixStream::pair()?;
    signal_hook::low_level::pipe::register(signal, handler_end)?;
    Ok(arrivals)
}

fn send_to_self(signal: Signal) -> io::Result<()> {
    Ok(rustix::process::kill_process(rustix::process::getpid(), signal)?)
}

/// Rejects signals that cannot or should not be caught, on which signal-hook panics.
fn catchable(signal: i32) -> io::Result<i32> {
    if signal_hook::consts::FORBIDDEN.contains(&signal) {
        return Err(io::Error::other(format!("signal {signal} cannot be caught")));
    }
    Ok(signal)
}
