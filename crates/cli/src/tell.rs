//! What the program says itself: talk on standard error, results on standard output. Nobody
//! listening is no reason to fail; a result that somebody waits for and does not get is one.

use std::fmt::Display;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use rustix::io::Errno;
use rustix::stdio::stdout;

use crate::own_streams;

/// Whether the command left standard error in the middle of a line.
static MID_LINE: AtomicBool = AtomicBool::new(false);

/// Makes the next line begin on a line of its own.
pub(crate) fn after_a_partial_line() {
    MID_LINE.store(true, Ordering::Relaxed);
}

/// `lastbyte: ` and the text.
pub(crate) fn line(text: impl Display) {
    write(&format!("lastbyte: {text}\n"));
}

/// A result that was asked for, on standard output. Nobody reading it is no error.
pub(crate) fn result(text: impl AsRef<[u8]>) -> anyhow::Result<()> {
    match own_streams::write_all(stdout(), text.as_ref()) {
        Ok(()) | Err(Errno::PIPE) => Ok(()),
        Err(errno) => Err(errno).context("cannot write to standard output"),
    }
}

/// The same as a line of JSON.
pub(crate) fn json_result(value: &impl serde::Serialize) -> anyhow::Result<()> {
    result(format!("{}\n", serde_json::to_string(value)?))
}

/// A value as one line of JSON.
pub(crate) fn json(value: &impl serde::Serialize) {
    match serde_json::to_string(value) {
        Ok(json) => write(&format!("{json}\n")),
        Err(error) => line(format_args!("cannot write JSON: {error}")),
    }
}

fn write(line: &str) {
    let begin = if MID_LINE.swap(false, Ordering::Relaxed) { "\n" } else { "" };
    // One write, so that no other writer gets in between; there is nobody to tell of its failure.
    _ = std::io::stderr().write_all(format!("{begin}{line}").as_bytes());
}
