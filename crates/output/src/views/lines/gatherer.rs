//! Puts lines together out of chunks, within a budget.

use std::{
    io,
    ops::{ControlFlow, Range},
};

use super::{Line, Lines};
use crate::decode::unfinished;
use crate::views::{
    piece::Piece,
    walk::{Chunk, Step, Walk},
};

pub(super) struct Gatherer {
    /// How many lines to pass over first.
    skip: u64,
    /// How many lines are still to be given.
    wanted: u64,
    max_bytes: usize,
    /// How much of the budget the lines have used.
    used: usize,
    open: Option<Open>,
    lines: Vec<Line>,
    dropped: Vec<Range<u64>>,
}

/// A line whose end has not come yet.
struct Open {
    text: Piece,
    range: Range<u64>,
    cut_from: Option<u64>,
}

impl Gatherer {
    pub(super) fn new(numbers: Range<u64>, max_bytes: usize) -> Self {
        Self {
            skip: numbers.start,
            wanted: numbers.end.saturating_sub(numbers.start),
            max_bytes,
            used: 0,
            open: None,
            lines: Vec::new(),
            dropped: Vec::new(),
        }
    }

    /// Walks until the lines are there or do not fit; what is before `end` then is the rest.
    pub(super) fn gather(mut self, mut walk: Walk<'_>, end: u64) -> io::Result<Lines> {
        let mut going = self.go_on_from(walk.at());
        while going.is_continue()
            && let Some(step) = walk.next()?
        {
            going = match step {
                Step::Bytes(chunk) => self.take_chunk(chunk),
                Step::Dropped(range) => self.take_dropped(range),
            };
        }
        let next = match going {
            ControlFlow::Break(next) => next,
            ControlFlow::Continue(()) => {
                // It is the last line: whether more are wanted makes no difference.
                _ = self.close(end);
                end
            }
        };
        let rest = (next < end).then_some(next..end);
        Ok(Lines { lines: self.lines, rest, dropped: self.dropped })
    }

    fn take_chunk(&mut self, mut chunk: Chunk<'_>) -> ControlFlow<u64> {
        while !chunk.bytes.is_empty() {
            let part = chunk.take_line();
            self.extend(part)?;
            if part.bytes.ends_with(b"\n") {
                self.close(chunk.at)?;
            }
        }
        ControlFlow::Continue(())
    }

    fn take_dropped(&mut self, range: Range<u64>) -> ControlFlow<u64> {
        self.close(range.start)?;
        self.dropped.push(range);
        ControlFlow::Continue(())
    }

    /// Adds a part of a line to the open one. Breaks, with the line's start, if it does not fit.
    fn extend(&mut self, part: Chunk<'_>) -> ControlFlow<u64> {
        let open = self.open.get_or_insert_with(|| Open::at(part.at));
        open.range.end = part.at + part.bytes.len() as u64;
        if self.skip > 0 || open.cut_from.is_some() {
            return ControlFlow::Continue(());
        }
        let text = part.bytes.strip_suffix(b"\n").unwrap_or(part.bytes);
        open.text.push(Chunk { at: part.at, bytes: text });
        if self.used + open.text.len() > self.max_bytes {
            if !self.lines.is_empty() {
                return ControlFlow::Break(open.range.start);
            }
            open.cut(self.max_bytes);
        }
        ControlFlow::Continue(())
    }

    /// Ends the open line, if there is one. Breaks, with `next`, if no more are wanted.
    fn close(&mut self, next: u64) -> ControlFlow<u64> {
        if let Some(open) = self.open.take() {
            if self.skip > 0 {
                self.skip -= 1;
            } else {
                self.wanted -= 1;
                // A line that was cut, however short for a character's sake, leaves no room.
                let text = open.cut_from.map_or(open.text.len(), |_| self.max_bytes);
                self.used += text + 1;
                self.lines.push(open.into_line());
            }
        }
        self.go_on_from(next)
    }

    fn go_on_from(&self, next: u64) -> ControlFlow<u64> {
        if self.wanted > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(next) }
    }
}

impl Open {
    fn at(start: u64) -> Self {
        Self { text: Piece::default(), range: start..start, cut_from: None }
    }

    /// Cuts what does not fit off the end, and no character in two.
    fn cut(&mut self, limit: usize) {
        let limit = limit - unfinished(&self.text.bytes()[..limit]);
        self.cut_from = Some(self.text.place(limit));
        self.text.truncate(limit);
    }

    fn into_line(self) -> Line {
        let cut = self.cut_from.map(|from| from..self.range.end);
        Line { range: self.range, text: self.text.into_bytes(), cut }
    }
}
