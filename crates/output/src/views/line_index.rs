//! Where the lines of a log begin: a sparse index, counted once and extended as the log grows.
//!
//! A mark is the number and the offset of a line. There is one about every `STRIDE` bytes, so that
//! a line is found by its number or by an offset after reading about that much. The line before a mark is
//! not read, because it ends there, so lines can be of any length. If there are `MOST_MARKS` marks, those
//! that are closest to the one before are given up.
//!
//! A line ends after its newline, at the end of the log or at a dropped range. A dropped range counts
//! as one line, because how many it had is unknown. It can grow: then what follows is counted again.

use std::{io, ops::ControlFlow, ops::Range};

use memchr::memchr_iter;

use super::Source;
use super::walk::{Walk, WalkStep};

const STRIDE: u64 = 256 << 10;
const MOST_MARKS: usize = 1 << 14;
/// After reading this much, a search returns the lines that it has found.
const MOST_READ: u64 = 64 << 20;

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
        while self.marks.len() >= MOST_MARKS {
            self.stride *= 2;
            let (stride, mut next) = (self.stride, 0);
            // What is between two that stay and before the last line of it is never more than two strides.
            self.marks.retain(|mark| {
                let stays = mark.offset >= next;
                if stays {
                    next = mark.offset + stride;
                }
                stays
            });
        }
    }

    /// The marks, and where the last line ends.
    fn ends_from(&self, first: usize) -> impl Iterator<Item = Mark> {
        let has_more = self.last.offset < self.counted;
        let end = Mark { line: self.last.line + u64::from(has_more), offset: self.counted };
        self.marks[first..].iter().copied().chain([end])
    }

    /// At most `count` lines from this place on, of those that were counted; no offsets if the place
    /// is past them. Fewer if that takes much reading.
    pub fn find(&self, source: &dyn Source, place: Place, count: usize) -> io::Result<Starts> {
        let after = match place {
            Place::Line(line) => self.marks.partition_point(|mark| mark.line <= line),
            Place::Offset(offset) => self.marks.partition_point(|mark| mark.offset <= offset),
        };
        let Some(mark) = self.marks.get(after.saturating_sub(1)) else {
            return Ok(Starts::default());
        };
        let mut finder = Finder { place, count, at: *mark, found: Starts::default() };
        let mut read = 0;
        for end in self.ends_from(after) {
            if finder.at.line + 1 < end.line {
                let from = finder.at.offset;
                let mut walk = Walk::new(source, from..end.offset);
                let flow = walk.try_for_each(|step| finder.take(step, end.line))?;
                read += walk.at() - from;
                if let ControlFlow::Break(Stop::Found) = flow {
                    return Ok(finder.found);
                }
            }
            if finder.at.offset < end.offset && finder.ended(end.offset).is_break() {
                return Ok(finder.found);
            }
            // What was dropped meanwhile has fewer lines than were counted.
            finder.at = end;
            if read > MOST_READ && !finder.found.offsets.is_empty() {
                break;
            }
        }
        Ok(finder.found)
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

/// Why a search reads no further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// All that was asked for is found.
    Found,
    /// It is known where the line ends that is being read.
    LastLine,
}

impl Finder {
    /// Up to the line before this one.
    fn take(&mut self, step: WalkStep<'_>, end: u64) -> ControlFlow<Stop> {
        match step {
            WalkStep::Bytes(chunk) => {
                for newline in memchr_iter(b'\n', chunk.bytes) {
                    self.ended_before(end, chunk.at + newline as u64 + 1)?;
                }
            }
            WalkStep::Dropped(range) => {
                if self.at.offset < range.start {
                    self.ended_before(end, range.start)?;
                }
                self.ended_before(end, range.end)?;
            }
        }
        ControlFlow::Continue(())
    }

    fn ended_before(&mut self, line: u64, end: u64) -> ControlFlow<Stop> {
        self.ended(end)?;
        if self.at.line + 1 < line {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(Stop::LastLine)
        }
    }

    /// The line that is being read ends here, and the next one begins.
    fn ended(&mut self, end: u64) -> ControlFlow<Stop> {
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
            return ControlFlow::Break(Stop::Found);
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests;
