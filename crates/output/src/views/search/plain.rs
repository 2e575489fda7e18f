//! Turns the lines that have escape sequences or are overwritten into the texts that a person sees.

use std::collections::VecDeque;
use std::ops::Range;

use super::splitter::{OVERLAP, SplitLine, TextKind};
use crate::views::mapped_bytes::MappedBytes;
use crate::views::text::cells::{Cell, Cells};
use crate::views::text::cleaner::Cleaner;

/// Cleans one line at a time.
#[derive(Debug, Clone, Default)]
pub(super) struct PlainLine {
    cleaner: Cleaner,
    /// `None` between lines.
    read: Option<LineRead>,
}

/// What was read of a line.
#[derive(Debug, Clone)]
struct LineRead {
    /// The bytes of the line, or of its last part.
    range: Range<u64>,
    /// Where the text starts that is not overwritten.
    text_start: u64,
    /// How many bytes were read for that text.
    scanned: usize,
}

impl PlainLine {
    pub(super) fn has_begun(&self) -> bool {
        self.read.is_some()
    }

    /// Starts within a line, at `from`, after these bytes of it, if they end within a sequence or a
    /// character.
    pub(super) fn start_within(&mut self, before: MappedBytes, from: u64) {
        self.cleaner.start_within(before, from);
        if !self.cleaner.is_between_characters() {
            self.read = Some(LineRead::new(from));
        }
    }

    /// Goes on with a line of which nothing had to be cleaned so far.
    pub(super) fn go_on(&mut self, line: SplitLine, ready: &mut VecDeque<SplitLine>) {
        if line.mapped.is_empty() {
            return;
        }
        let mut fresh = line.mapped;
        let mut known = fresh.clone();
        fresh.keep_from(line.known);
        known.truncate(line.known);
        self.cleaner.push(known, |_, _| ());
        self.cleaner.cells.keep_last(usize::MAX);
        self.push(fresh, ready);
    }

    /// Takes bytes of the line, without its newline. What is complete is `ready`.
    pub(super) fn push(&mut self, bytes: MappedBytes, ready: &mut VecDeque<SplitLine>) {
        if bytes.is_empty() {
            return;
        }
        let range = bytes.range();
        let read = self.read.get_or_insert_with(|| LineRead::new(range.start));
        self.cleaner.push(bytes, |cells, character| read.take_character(cells, character, ready));
        read.range.end = range.end;
    }

    /// Ends the line, with a newline at this offset if there is one.
    pub(super) fn end_line(&mut self, newline: Option<u64>, ready: &mut VecDeque<SplitLine>) {
        let Some(mut read) = self.read.take() else { return };
        self.cleaner.end_line(|cells, character| read.take_character(cells, character, ready));
        let cells = &mut self.cleaner.cells;
        if let Some(newline) = newline {
            read.range.end = newline + 1;
            read.scanned += 1;
        }
        if newline.is_some() || cells.all().len() > cells.kept() {
            ready.push_back(read.whole(cells));
        }
        cells.clear();
    }

    /// The line as it is so far, if it has a text.
    pub(super) fn so_far(&self) -> Option<SplitLine> {
        let cells = &self.cleaner.cells;
        let read = self.read.as_ref().filter(|_| cells.all().len() > cells.kept())?;
        Some(read.whole(cells))
    }
}

impl LineRead {
    fn new(start: u64) -> Self {
        Self { range: start..start, text_start: start, scanned: 0 }
    }

    /// Looks at the cells after the character with this range.
    fn take_character(
        &mut self,
        cells: &mut Cells,
        character: Range<u64>,
        ready: &mut VecDeque<SplitLine>,
    ) {
        if let Some(overwritten) = cells.take_overwritten() {
            // Some of it may be left of an earlier text.
            let start = overwritten.iter().map(|cell| cell.start).fold(self.text_start, u64::min);
            let range = start..character.start;
            ready.push_back(self.split_line(&overwritten, range, TextKind::Overwritten));
            (self.text_start, self.scanned) = (character.start, 0);
        }
        self.scanned += (character.end - character.start).min(4) as usize;
        if cells.is_full() {
            let mut part =
                self.split_line(cells.all(), self.range.start..character.end, TextKind::Part);
            part.known = bytes(&cells.all()[..cells.kept()]);
            part.resume = bytes(&cells.all()[..cells.all().len() - OVERLAP]);
            ready.push_back(part);
            cells.keep_last(OVERLAP);
            *self = Self::new(character.end);
        }
    }

    fn whole(&self, cells: &Cells) -> SplitLine {
        let mut whole = self.split_line(cells.all(), self.range.clone(), TextKind::Whole);
        whole.known = bytes(&cells.all()[..cells.kept()]);
        whole
    }

    fn split_line(&self, cells: &[Cell], range: Range<u64>, kind: TextKind) -> SplitLine {
        let mut mapped = MappedBytes::default();
        for cell in cells {
            let mut buffer = [0; 4];
            let bytes = cell.character.encode_utf8(&mut buffer).as_bytes();
            mapped.push_character(bytes, cell.start..cell.end);
        }
        let resume = mapped.len();
        SplitLine { mapped, known: 0, resume, range, scanned: self.scanned, kind }
    }
}

/// How many bytes the text of these cells has.
fn bytes(cells: &[Cell]) -> usize {
    cells.iter().map(|cell| cell.character.len_utf8()).sum()
}
