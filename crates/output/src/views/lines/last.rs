//! The last lines: where they start is found backward, then they are read forward.

use std::{
    io,
    ops::{ControlFlow, Range},
};

use super::{Gatherer, Line, Lines};
use crate::decode::character_across;
use crate::views::{
    Source,
    back::{WalkBack, last_bytes},
    piece::{Part, Piece},
    walk::Walk,
};

/// The last `count` lines, at most `max_bytes` of them.
pub fn last(source: &dyn Source, count: u64, max_bytes: usize) -> io::Result<Lines> {
    let end = source.end();
    let start = Finder::new(count, max_bytes).find(source)?.unwrap_or(end);
    let walk = Walk::new(source, start..end);
    let mut last = Gatherer::new(0..count, max_bytes).gather(walk, end)?;
    if let Some(line) = last.lines.last_mut().filter(|line| line.cut.is_some()) {
        *line = end_of(source, line.range.clone(), max_bytes)?;
    }
    last.rest = (start > 0).then_some(0..start);
    Ok(last)
}

/// A line that does not fit, cut at its beginning.
fn end_of(source: &dyn Source, range: Range<u64>, max_bytes: usize) -> io::Result<Line> {
    // One more for the newline, three more to see a character that the cut falls into.
    let mut text = last_bytes(source, range.clone(), max_bytes.saturating_add(4))?;
    if text.bytes().ends_with(b"\n") {
        text.truncate(text.len() - 1);
    }
    let cut = text.len().saturating_sub(max_bytes);
    let cut = character_across(text.bytes(), cut).map_or(cut, |character| character.end);
    let cut_end = if text.is_empty() { range.end } else { text.place(cut) };
    text.keep_from(cut);
    Ok(Line { cut: Some(range.start..cut_end), range, text: text.into_bytes() })
}

/// Looks for line starts from the end of a log backward.
struct Finder {
    count: u64,
    max_bytes: usize,
    /// How many lines have been found, and where the first of them starts.
    lines: u64,
    start: Option<u64>,
    /// The text seen so far, in bytes without newlines.
    text: usize,
    /// The place of the first byte seen, unless nothing or a dropped range comes before it.
    following: Option<u64>,
}

impl Finder {
    fn new(count: u64, max_bytes: usize) -> Self {
        Self { count, max_bytes, lines: 0, start: None, text: 0, following: None }
    }

    fn find(mut self, source: &dyn Source) -> io::Result<Option<u64>> {
        let mut walk = WalkBack::new(source, 0..source.end());
        let mut going = ControlFlow::Continue(());
        while self.count > 0 && going.is_continue() {
            going = match walk.next()? {
                Some(Part::Kept(piece)) => self.look_into(&piece),
                Some(Part::Dropped(_)) => self.line_starts_at_following(),
                None => {
                    _ = self.line_starts_at_following();
                    ControlFlow::Break(())
                }
            };
        }
        Ok(self.start)
    }

    fn look_into(&mut self, piece: &Piece) -> ControlFlow<()> {
        let mut rest = piece.bytes();
        while let Some(newline) = rest.iter().rposition(|byte| *byte == b'\n') {
            let behind = newline + 1;
            self.text += rest.len() - behind;
            if behind < piece.len() {
                self.following = Some(piece.place(behind));
            }
            self.line_starts_at_following()?;
            rest = &rest[..newline];
        }
        self.text += rest.len();
        self.following = Some(piece.place(0));
        if self.lines > 0 { self.check_budget() } else { ControlFlow::Continue(()) }
    }

    /// Counts a line, if there is anything behind the border just found.
    fn line_starts_at_following(&mut self) -> ControlFlow<()> {
        let Some(start) = self.following.take() else {
            return ControlFlow::Continue(());
        };
        // A line alone is given whatever its length.
        if self.lines > 0 {
            self.check_budget()?;
        }
        self.start = Some(start);
        self.lines += 1;
        if self.lines < self.count { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    fn check_budget(&self) -> ControlFlow<()> {
        let between = usize::try_from(self.lines).unwrap_or(usize::MAX);
        match self.text.saturating_add(between) <= self.max_bytes {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    }
}
