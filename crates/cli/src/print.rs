//! Messages on standard error and results on standard output. A lost message is not an error; a
//! lost result is one, unless its reader is gone.

use std::fmt::Display;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{format, stdio, timestamp};

/// Whether standard error is in the middle of a line, of the command or of our own.
static MID_LINE: AtomicBool = AtomicBool::new(false);

/// Whether each message has the time before it.
static HAS_TIMES: AtomicBool = AtomicBool::new(false);

/// Puts the time before each message from now on.
pub(crate) fn show_times() {
    HAS_TIMES.store(true, Ordering::Relaxed);
}

/// Makes the next message start on a new line.
pub(crate) fn break_line_first() {
    MID_LINE.store(true, Ordering::Relaxed);
}

/// Makes it start where the cursor is again.
pub(crate) fn line_is_clear() {
    MID_LINE.store(false, Ordering::Relaxed);
}

/// `lastbyte: ` and the text, escaped, since it may quote a name that a command chose.
pub(crate) fn message(text: impl Display) {
    let has_times = HAS_TIMES.load(Ordering::Relaxed);
    let time = if has_times { format!("{} ", timestamp::now_in_utc()) } else { String::new() };
    write(&format!("{time}lastbyte: {}\n", format::lines(&text.to_string())));
}

/// A result, on standard output. A reader that is gone is not an error.
pub(crate) fn result(text: impl AsRef<[u8]>) -> anyhow::Result<()> {
    stdio::write_stdout(text.as_ref()).map(drop)
}

/// The same as a line of JSON.
pub(crate) fn json_result(value: &impl serde::Serialize) -> anyhow::Result<()> {
    result(format!("{}\n", serde_json::to_string(value)?))
}

/// An answer: as a line of JSON if that is wanted, else in words.
pub(crate) fn answer<T: serde::Serialize>(
    json: bool,
    answer: &T,
    words: impl FnOnce(&T) -> String,
) -> anyhow::Result<()> {
    if json { json_result(answer) } else { result(words(answer)) }
}

/// A value as one line of JSON.
pub(crate) fn json_message(value: &impl serde::Serialize) {
    match serde_json::to_string(value) {
        Ok(json) => write(&format!("{json}\n")),
        Err(error) => message(format_args!("cannot write JSON: {error}")),
    }
}

fn write(line: &str) {
    let begin = if MID_LINE.swap(false, Ordering::Relaxed) { "\n" } else { "" };
    // One write, so that no other writer gets in between; a failure could not be reported.
    _ = std::io::stderr().write_all(format!("{begin}{line}").as_bytes());
}
