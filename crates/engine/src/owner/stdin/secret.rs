//! Which parts of the input are secrets, and whether the terminal was told not to show them.

use std::collections::VecDeque;
use std::ops::Range;

use lastbyte_sys::pty::LineKeys;

use crate::notes::{NotedSecret, Notes};

#[derive(Debug, Default)]
pub(super) struct SecretInput {
    pub(super) is_on: bool,
    /// The terminal showed what was typed, and was told not to.
    pub(super) is_hidden: bool,
    pub(super) line: TypedLine,
    /// Not written yet, oldest first.
    ranges: VecDeque<Range<u64>>,
}

impl SecretInput {
    /// Of a program that was killed: all that it had not written may be secret.
    pub(super) fn found(noted: NotedSecret, unwritten: Range<u64>) -> Self {
        let ranges = if noted.has_input { VecDeque::from([unwritten]) } else { VecDeque::new() };
        let line = TypedLine { has_secret: noted.has_line, is_quoted: false };
        Self { is_on: false, is_hidden: noted.is_hidden, line, ranges }
    }

    pub(super) fn add(&mut self, range: Range<u64>) {
        self.ranges.push_back(range);
    }

    /// How many bytes from here on are secret; if none, how many there are before the next secret.
    pub(super) fn next(&self, at: u64) -> Next {
        match self.ranges.iter().find(|range| at < range.end) {
            Some(range) if at < range.start => Next::Plain(range.start - at),
            Some(range) => Next::Secret(range.end - at),
            None => Next::Plain(u64::MAX),
        }
    }

    /// Everything up to here is written.
    pub(super) fn written(&mut self, at: u64) {
        self.ranges.retain(|range| at < range.end);
    }

    /// Nothing has to be hidden any more.
    pub(super) fn is_over(&self) -> bool {
        !self.is_on && self.ranges.is_empty()
    }

    pub(super) fn note(&self, notes: &Notes) {
        let has_input = self.is_on || !self.ranges.is_empty();
        let has_line = self.line.has_secret;
        notes.note_secret(NotedSecret { has_input, is_hidden: self.is_hidden, has_line });
    }
}

/// The line that is being typed. A terminal that takes lines keeps it, and a key shows all of it again
/// (`VREPRINT`) unless nothing is shown.
#[derive(Debug, Default)]
pub(super) struct TypedLine {
    pub(super) has_secret: bool,
    /// The next byte has no meaning.
    is_quoted: bool,
}

impl TypedLine {
    /// These bytes were typed. Without keys for lines, nothing is kept.
    pub(super) fn typed(&mut self, bytes: &[u8], is_secret: bool, keys: Option<&LineKeys>) {
        let Some(keys) = keys else { return *self = Self::default() };
        for byte in bytes {
            if !self.is_quoted && keys.end_line(*byte) {
                self.has_secret = false;
            } else {
                self.has_secret |= is_secret;
                self.is_quoted = !self.is_quoted && keys.quote(*byte);
            }
        }
    }
}

/// What comes next, and how much of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Plain(u64),
    Secret(u64),
}
