//! Where the lines of a log begin: a sparse index, counted once and extended as the log grows.
//!
//! A mark is the number and the offset of a line. There is one about every `STRIDE` bytes, so that
//! a line is found by its number or by an offset after reading about that much, however long the lines
//! are. If there are `MOST_MARKS` marks, every second one is given up.
//!
//! A line ends after its newline, at the end of the log or at a dropped range. A dropped range counts
//! as one line, because how many it had is unknown. It can grow: then what follows is counted again.

use std::{io, ops::ControlFlow, ops::Range};

use memchr::memchr_iter;

use super::Source;
use super::walk::{Walk, WalkStep};

const STRIDE: u64 = 256 << 10;
const MOST_MARKS: usize = 1 << 14;

/// The index of one log, as far as it was counted.
#[derive(Debug, Clone)]
pub struct LineIndex {
    marks: Vec<Mark>,
    stride: u64,
    /// The last line, which may not have ended.
    last: Mark,
    counted: u64,
    /// The dropped ranges that were met.
    met: Vec<Range<u64>>,
}

/// A line that begins at this offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    line: u64,
    offset: u64,
}

/// Which line to begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The one that this many lines come before.
    Line(u64),
    /// The one that has the byte at this offset.
    Offset(u64),
}

/// Lines in a row.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Starts {
    /// How many lines come before the first of them.
    pub first: u64,
    /// Where each begins.
    pub offsets: Vec<u64>,
    /// Where the last of them ends.
    pub end: u64,
}

impl Default for LineIndex {
    fn default() -> Self {
        let last = Mark { line: 0, offset: 0 };
        Self { marks: vec![last], stride: STRIDE, last, counted: 0, met: Vec::new() }
    }
}

impl LineIndex {
    /// The offset up to which lines were counted.
    pub fn counted(&self) -> u64 {
        self.counted
    }

    /// How many lines there are up to there.
    pub fn lines(&self) -> u64 {
        self.last.line + u64::from(self.last.offset < self.counted)
    }

    /// Counts at most `max_bytes` more. What an error interrupts goes on later.
    pub fn extend(&mut self, source: &dyn Source, max_bytes: u64) -> io::Result<()> {
        self.forget_changed(source.dropped());
        let end = self.counted.saturating_add(max_bytes);
        // A dropped range is not met in parts, which would be a line each.
        let split = source.dropped().iter().find(|range| range.start < end && end < range.end);
        let end = split.map_or(end, |range| range.end).min(source.end());
        let mut walk = Walk::new(source, self.counted..end);
        let flow = walk.try_for_each(|step| {
            self.count(&step);
            ControlFlow::<()>::Continue(())
        })?;
        debug_assert!(flow.is_continue());
        Ok(())
    }

    /// Gives up what follows the first dropped range that is not as it was met.
    fn forget_changed(&mut self, dropped: &[Range<u64>]) {
        let below = dropped.iter().filter(|range| range.start < self.counted);
        let same = below.clone().zip(&self.met).take_while(|(now, met)| now == met).count();
        let changed = [below.clone().nth(same), self.met.get(same)];
        let Some(from) = changed.into_iter().flatten().map(|range| range.start).min() else {
            return;
        };
        self.marks.truncate(self.marks.partition_point(|mark| mark.offset <= from).max(1));
        self.last = self.marks.last().copied().unwrap_or(Mark { line: 0, offset: 0 });
        self.counted = self.last.offset;
        self.met.retain(|range| range.end <= self.counted);
    }

    fn count(&mut self, step: &WalkStep<'_>) {
        match step {
            WalkStep::Bytes(chunk) => {
                // Almost all newlines are only counted: a chunk has at most one mark.
                let mark_at = self.next_mark();
                let mut begun = 0;
                for newline in memchr_iter(b'\n', chunk.bytes) {
                    begun = newline + 1;
                    self.last.line += 1;
                    if chunk.at + begun as u64 >= mark_at {
                        self.last.offset = chunk.at + begun as u64;
                        self.mark();
                        break;
                    }
                }
                if let Some(newline) = memchr::memrchr(b'\n', &chunk.bytes[begun..]) {
                    self.last.line += memchr_iter(b'\n', &chunk.bytes[begun..]).count() as u64;
                    begun += newline + 1;
                }
                if begun > 0 {
                    self.last.offset = chunk.at + begun as u64;
                }
                self.counted = chunk.at + chunk.bytes.len() as u64;
            }
            WalkStep::Dropped(range) => {
                if self.last.offset < range.start {
                    self.begin(range.start);
                }
                self.begin(range.end);
                self.counted = range.end;
                self.met.push(range.clone());
            }
        }
    }

    fn begin(&mut self, offset: u64) {
        self.last = Mark { line: self.last.line + 1, offset };
        if offset >= self.next_mark() {
            self.mark();
        }
    }

    fn next_mark(&self) -> u64 {
        self.marks.last().map_or(0, |mark| mark.offset).saturating_add(self.stride)
    }

    fn mark(&mut self) {
        self.marks.push(self.last);
        if self.marks.len() >= MOST_MARKS {
            self.stride *= 2;
            let mut at = 0;
            self.marks.retain(|_| {
                at += 1;
                at % 2 == 1
            });
        }
    }

    /// At most `count` lines from this place on, of those that were counted; no offsets if the place
    /// is past them.
    pub fn find(&self, source: &dyn Source, place: Place, count: usize) -> io::Result<Starts> {
        let after = match place {
            Place::Line(line) => self.marks.partition_point(|mark| mark.line <= line),
            Place::Offset(offset) => self.marks.partition_point(|mark| mark.offset <= offset),
        };
        let Some(mark) = self.marks.get(after.saturating_sub(1)) else {
            return Ok(Starts::default());
        };
        let mut finder = Finder { place, count, at: *mark, found: Starts::default() };
        let mut walk = Walk::new(source, mark.offset..self.counted);
        let flow = walk.try_for_each(|step| finder.take(step))?;
        Ok(match flow {
            ControlFlow::Break(found) => found,
            ControlFlow::Continue(()) => finder.finish(self.counted),
        })
    }
}

/// Goes from line to line.
struct Finder {
    place: Place,
    count: usize,
    /// The line that is being read.
    at: Mark,
    found: Starts,
}

impl Finder {
    fn take(&mut self, step: WalkStep<'_>) -> ControlFlow<Starts> {
        match step {
            WalkStep::Bytes(chunk) => {
                for newline in memchr_iter(b'\n', chunk.bytes) {
                    self.ended(chunk.at + newline as u64 + 1)?;
                }
            }
            WalkStep::Dropped(range) => {
                if self.at.offset < range.start {
                    self.ended(range.start)?;
                }
                self.ended(range.end)?;
            }
        }
        ControlFlow::Continue(())
    }

    /// The line that is being read ends here, and the next one begins.
    fn ended(&mut self, end: u64) -> ControlFlow<Starts> {
        let is_wanted = match self.place {
            Place::Line(line) => self.at.line >= line,
            Place::Offset(offset) => end > offset,
        };
        if is_wanted && self.count > 0 {
            if self.found.offsets.is_empty() {
                self.found.first = self.at.line;
            }
            self.found.offsets.push(self.at.offset);
            self.found.end = end;
        }
        self.at = Mark { line: self.at.line + 1, offset: end };
        if is_wanted && self.found.offsets.len() >= self.count {
            return ControlFlow::Break(std::mem::take(&mut self.found));
        }
        ControlFlow::Continue(())
    }

    /// With a last line that has not ended.
    fn finish(mut self, counted: u64) -> Starts {
        if self.at.offset < counted
            && let ControlFlow::Break(found) = self.ended(counted)
        {
            return found;
        }
        self.found
    }
}

#[cfg(test)]
mod tests;
