//! Actions that exit with 0 and leave someone behind who keeps the output open.
//!
//! - `leave-tail`: who is left prints `ta`, waits 30 ms, prints `il`, then holds.
//! - `leave-silent-holder`: who is left only holds.
//! - `leave-chatty-holder MS`: who is left writes the next byte of the pattern each MS.

use std::ffi::OsString;
use std::io;

use crate::action;
use crate::output::OUT;
use crate::words::Words;

pub(crate) fn tail(words: Words<'_>) -> io::Result<()> {
    words.done()?;
    leave("print ta then sleep-ms 30 then print il then hold")
}

pub(crate) fn silent_holder(words: Words<'_>) -> io::Result<()> {
    words.done()?;
    leave("hold")
}

pub(crate) fn chatty_holder(mut words: Words<'_>) -> io::Result<()> {
    let period: u64 = words.number("MS")?;
    words.done()?;
    leave(&format!("chatter {period} {}", OUT.offset()))
}

fn leave(actions: &str) -> io::Result<()> {
    let line = format!("background {actions} end then exit 0");
    let words: Vec<OsString> = line.split_whitespace().map(Into::into).collect();
    action::perform_all(&words)
}
