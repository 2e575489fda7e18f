//! Which cursor keys a program wants, by what it has written to its terminal.

use std::io;

use lastbyte_engine::{LogSource, Process};
use lastbyte_output::views::{Read, Source};

use super::keys::CursorKeys;

/// A program sets the mode when it begins to draw, and few draw this much afterwards.
const MOST: u64 = 1 << 20;

/// By the last megabyte of output. Reads it, so it belongs on a blocking thread.
pub(super) fn of(process: &Process) -> io::Result<CursorKeys> {
    let source = LogSource::all(process.reader(), process.snapshot());
    let mut at = source.end().saturating_sub(MOST);
    let mut bytes = Vec::new();
    let mut chunk = vec![0; 64 << 10];
    loop {
        match source.read_at(at, &mut chunk)? {
            Read::Bytes(0) => return Ok(last_mode(&bytes)),
            Read::Bytes(count) => {
                bytes.extend_from_slice(&chunk[..count]);
                at += count as u64;
            }
            Read::Dropped(range) => at = range.end,
            Read::Other { until } => at = until,
        }
    }
}

/// `ESC [ ? 1 h` asks for the application's, `ESC [ ? 1 l` for the normal ones, both also within a
/// list of modes. `ESC c` and `ESC [ ! p` reset the terminal.
fn last_mode(bytes: &[u8]) -> CursorKeys {
    let escapes = (0..bytes.len()).rev().filter(|at| bytes[*at] == 0x1b);
    escapes.map(|at| &bytes[at + 1..]).find_map(mode).unwrap_or(CursorKeys::Normal)
}

fn mode(sequence: &[u8]) -> Option<CursorKeys> {
    if sequence.starts_with(b"c") || sequence.starts_with(b"[!p") {
        return Some(CursorKeys::Normal);
    }
    let modes = sequence.strip_prefix(b"[?")?;
    let end = modes.iter().position(|byte| !byte.is_ascii_digit() && *byte != b';')?;
    let mut numbers = modes[..end].split(|byte| *byte == b';');
    match modes[end] {
        b'h' if numbers.any(|number| number == b"1") => Some(CursorKeys::Application),
        b'l' if numbers.any(|number| number == b"1") => Some(CursorKeys::Normal),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_mode_that_was_set_counts() {
        let check = |bytes: &[u8], want| assert_eq!(last_mode(bytes), want, "{bytes:?}");
        check(b"", CursorKeys::Normal);
        check(b"text \x1b[?1h more", CursorKeys::Application);
        check(b"\x1b[?1h\x1b=\x1b[?25l", CursorKeys::Application);
        check(b"\x1b[?1h\x1b[?1l", CursorKeys::Normal);
        check(b"\x1b[?1l\x1b[?7;1h", CursorKeys::Application);
        check(b"\x1b[?1049h\x1b[?12h", CursorKeys::Normal);
        check(b"\x1b[?1h\x1bc", CursorKeys::Normal);
        check(b"\x1b[?1h\x1b[!p", CursorKeys::Normal);
        check(b"\x1b[?1h\x1b[?1", CursorKeys::Application);
        check(b"\x1b[1h\x1b[?1$h\xff\x1b", CursorKeys::Normal);
    }
}
