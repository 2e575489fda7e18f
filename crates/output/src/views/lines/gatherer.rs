//! Collects lines from chunks, within a budget.

use std::{
    io,
    ops::{ControlFlow, Range},
};

use super::{Line, Lines};
use crate::decode::unfinished;
use crate::views::{
    mapped_bytes::MappedBytes,
    walk::{Chunk, Walk, WalkStep},
};

pub(super) struct Gatherer {
    /// How many more lines to return.
    wanted: u64,
    max_bytes: usize,
    /// How much of the budget the lines have used.
    used: usize,
    open: Option<OpenLine>,
    lines: Vec<Line>,
}

/// A line whose end has not been read yet.
struct OpenLine {
    text: MappedBytes,
    range: Range<u64>,
    cut_from: Option<u64>,
}

impl Gatherer {
    pub(super) fn new(wanted: u64, max_bytes: usize) -> Self {
        Self { wanted, max_bytes, used: 0, open: None, lines: Vec::new() }
    }

    /// Reads until all wanted lines are there or the next does not fit. Whatever is left before
    /// `end` is the rest.
    pub(super) fn gather(mut self, mut walk: Walk<'_>, end: u64) -> io::Result<Lines> {
        let mut flow = self.check_wanted(walk.at());
        if flow.is_continue() {
            flow = walk.try_for_each(|step| self.take(step))?;
        }
        if flow.is_continue() {
            // This is the last line, so it does not matter whether more are wanted.
            _ = self.close(end);
        }
        let rest = flow.break_value().filter(|next| *next < end).map(|next| next..end);
        Ok(Lines { lines: self.lines, rest })
    }

    fn take(&mut self, step: WalkStep<'_>) -> ControlFlow<u64> {
        match step {
            WalkStep::Bytes(mut chunk) => {
                while !chunk.bytes.is_empty() {
                    let part = chunk.take_line();
                    self.extend(part)?;
                    if part.bytes.ends_with(b"\n") {
                        self.close(chunk.at)?;
                    }
                }
            }
            WalkStep::Dropped(range) => self.close(range.start)?,
        }
        ControlFlow::Continue(())
    }

    /// Adds a part of a line to the open one. Breaks with the start of the line if it does not
    /// fit.
    fn extend(&mut self, part: Chunk<'_>) -> ControlFlow<u64> {
        let open = self.open.get_or_insert_with(|| OpenLine {
            text: MappedBytes::default(),
            range: part.at..part.at,
            cut_from: None,
        });
        open.range.end = part.at + part.bytes.len() as u64;
        if open.cut_from.is_some() {
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

    /// Ends the open line, if there is one. Breaks with `next` if no more lines are wanted.
    fn close(&mut self, next: u64) -> ControlFlow<u64> {
        if let Some(open) = self.open.take() {
            self.wanted -= 1;
            // A cut line uses up the budget, even if it was cut earlier to keep a character.
            let text = open.cut_from.map_or(open.text.len(), |_| self.max_bytes);
            self.used += text + 1;
            let cut = open.cut_from.map(|from| from..open.range.end);
            self.lines.push(Line { range: open.range, text: open.text.into_bytes(), cut });
        }
        self.check_wanted(next)
    }

    fn check_wanted(&self, next: u64) -> ControlFlow<u64> {
        if self.wanted > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(next) }
    }
}

impl OpenLine {
    /// Cuts the end off so that `limit` bytes are left, fewer rather than splitting a character.
    fn cut(&mut self, limit: usize) {
        let limit = limit - unfinished(&self.text.bytes()[..limit]);
        self.cut_from = Some(self.text.offset(limit));
        self.text.truncate(limit);
    }
}
