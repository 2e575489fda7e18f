//! The last lines: their start is found backward, then they are read forward.

use std::{
    io,
    ops::{ControlFlow, Range},
};

use super::{Gatherer, Line, Lines};
use crate::decode::character_across;
use crate::views::{
    Source,
    mapped_bytes::{MappedBytes, SourcePart, WalkBack, last_bytes},
    walk::Walk,
};

/// The last `count` lines, at most `max_bytes`.
pub fn last(source: &dyn Source, count: u64, max_bytes: usize) -> io::Result<Lines> {
    let end = source.end();
    let start = Finder::new(count, max_bytes).find(source)?.unwrap_or(end);
    let walk = Walk::new(source, start..end);
    let mut last = Gatherer::new(count, max_bytes).gather(walk, end)?;
    if let Some(line) = last.lines.last_mut().filter(|line| line.cut.is_some()) {
        *line = end_of_line(source, line.range.clone(), max_bytes)?;
    }
    last.rest = (start > 0).then_some(0..start);
    Ok(last)
}

/// A line that does not fit, with its beginning cut off.
fn end_of_line(source: &dyn Source, range: Range<u64>, max_bytes: usize) -> io::Result<Line> {
    // One more for the newline, three more to see a character that the cut would split.
    let mut text = last_bytes(source, range.clone(), max_bytes.saturating_add(4))?;
    if text.bytes().ends_with(b"\n") {
        text.truncate(text.len() - 1);
    }
    let cut = text.len().saturating_sub(max_bytes);
    let cut = character_across(text.bytes(), cut).map_or(cut, |character| character.end);
    let cut_end = if text.is_empty() { range.end } else { text.offset(cut) };
    text.keep_from(cut);
    Ok(Line { cut: Some(range.start..cut_end), range, text: text.into_bytes() })
}

/// Looks for line starts backward from the end of a log.
struct Finder {
    count: u64,
    max_bytes: usize,
    /// How many lines have been found, and where the first of them starts.
    lines: u64,
    start: Option<u64>,
    /// The length of the text seen so far, without newlines.
    text: usize,
    /// The offset of the first byte seen after the last border, where a line would start.
    following: Option<u64>,
}

impl Finder {
    fn new(count: u64, max_bytes: usize) -> Self {
        Self { count, max_bytes, lines: 0, start: None, text: 0, following: None }
    }

    fn find(mut self, source: &dyn Source) -> io::Result<Option<u64>> {
        let mut walk = WalkBack::new(source, 0..source.end());
        let mut flow = ControlFlow::Continue(());
        while self.count > 0 && flow.is_continue() {
            flow = match walk.next()? {
                Some(SourcePart::Kept(bytes)) => self.look_into(&bytes),
                Some(SourcePart::Dropped(_)) => self.line_starts_at_following(),
                None => {
                    _ = self.line_starts_at_following();
                    ControlFlow::Break(())
                }
            };
        }
        Ok(self.start)
    }

    fn look_into(&mut self, bytes: &MappedBytes) -> ControlFlow<()> {
        let mut rest = bytes.bytes();
        while let Some(newline) = rest.iter().rposition(|byte| *byte == b'\n') {
            let after = newline + 1;
            self.text += rest.len() - after;
            if after < bytes.len() {
                self.following = Some(bytes.offset(after));
            }
            self.line_starts_at_following()?;
            rest = &rest[..newline];
        }
        self.text += rest.len();
        self.following = Some(bytes.offset(0));
        self.check_budget()
    }

    /// Counts a line if any bytes follow the border just found.
    fn line_starts_at_following(&mut self) -> ControlFlow<()> {
        let Some(start) = self.following.take() else {
            return ControlFlow::Continue(());
        };
        self.check_budget()?;
        self.start = Some(start);
        self.lines += 1;
        if self.lines < self.count { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    /// Breaks if the text seen does not fit. The last line is returned whatever its length.
    fn check_budget(&self) -> ControlFlow<()> {
        let newlines = usize::try_from(self.lines).unwrap_or(usize::MAX);
        if self.lines == 0 || self.text.saturating_add(newlines) <= self.max_bytes {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    }
}
