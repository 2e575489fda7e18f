//! Which parts of the input are secrets, and whether the terminal was told not to show them.

use std::collections::VecDeque;
use std::ops::Range;

use crate::notes::{NotedSecret, Notes};

#[derive(Debug, Default)]
pub(super) struct SecretInput {
    pub(super) is_on: bool,
    /// The terminal showed what was typed, and was told not to.
    pub(super) is_hidden: bool,
    /// Not written yet, oldest first.
    ranges: VecDeque<Range<u64>>,
}

impl SecretInput {
    /// Of a program that was killed: all that it had not written may be secret.
    pub(super) fn found(noted: NotedSecret, unwritten: Range<u64>) -> Self {
        let ranges = if noted.has_input { VecDeque::from([unwritten]) } else { VecDeque::new() };
        Self { is_on: false, is_hidden: noted.is_hidden, ranges }
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
        notes.note_secret(NotedSecret { has_input, is_hidden: self.is_hidden });
    }
}

/// What comes next, and how much of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Plain(u64),
    Secret(u64),
}
