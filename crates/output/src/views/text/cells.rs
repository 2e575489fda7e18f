//! The cells of one line.

use std::mem;

/// The most characters kept of a line.
const MAX_CELLS: usize = 65_536;

/// A character and its bytes in the log.
#[derive(Debug, Clone, Copy)]
pub(in crate::views) struct Cell {
    pub(in crate::views) character: char,
    pub(in crate::views) start: u64,
    pub(in crate::views) end: u64,
}

/// A line with a cursor that is in the text or directly after it, so that the cost of a change does
/// not depend on the length of the line.
///
/// A text that ends where the cursor goes back to the first column is *overwritten* once something
/// is printed there or the line is erased.
#[derive(Debug, Clone, Default)]
pub(in crate::views) struct Cells {
    cells: Vec<Cell>,
    cursor: usize,
    /// The length of the text printed since the cursor was in the first column. The cells after it are
    /// left of an earlier text.
    printed: usize,
    /// Whether the cursor has gone back to the first column after that text.
    went_back: bool,
    overwritten: Vec<Cell>,
    /// How many cells at the front [`Cells::keep_last`] has kept.
    kept: usize,
    /// Whether characters after the last cell are missing.
    pub(super) overflowed: bool,
}

impl Cells {
    pub(in crate::views) fn all(&self) -> &[Cell] {
        &self.cells
    }

    pub(in crate::views) fn is_full(&self) -> bool {
        self.cells.len() == MAX_CELLS
    }

    /// How many cells at the front were there before [`Cells::keep_last`].
    pub(in crate::views) fn kept(&self) -> usize {
        self.kept
    }

    /// The text that the last character has overwritten, if any.
    pub(in crate::views) fn take_overwritten(&mut self) -> Option<Vec<Cell>> {
        (!self.overwritten.is_empty()).then(|| mem::take(&mut self.overwritten))
    }

    /// Leaves an empty line.
    pub(in crate::views) fn clear(&mut self) {
        let mut cells = mem::take(&mut self.cells);
        cells.clear();
        *self = Self { cells, ..Self::default() };
    }

    /// Removes all cells but the last ones. The column where the line begins is gone: what returns
    /// to it starts an empty line.
    pub(in crate::views) fn keep_last(&mut self, count: usize) {
        let gone = self.cells.len().saturating_sub(count);
        self.cells.drain(..gone);
        self.cursor = self.cursor.saturating_sub(gone);
        self.printed = self.printed.saturating_sub(gone);
        self.kept = self.cells.len();
    }

    pub(super) fn print(&mut self, printed: Cell) {
        // It may have gone forward again, over what it leaves as it is.
        if self.went_back && (self.cursor == 0 || self.kept > 0) {
            self.overwrite(self.printed);
            if self.kept > 0 {
                self.remove_from(0);
            }
        }
        if let Some(cell) = self.cells.get_mut(self.cursor) {
            *cell = printed;
        } else if self.cells.len() < MAX_CELLS {
            self.cells.push(printed);
        } else {
            self.overflowed = true;
            return;
        }
        self.cursor += 1;
        self.printed = self.printed.max(self.cursor);
    }

    /// The column of the cursor, counted from 0.
    pub(super) fn cursor(&self) -> usize {
        self.cursor
    }

    /// Moves to a column, or to the end of the text if that is nearer.
    pub(super) fn move_to(&mut self, column: usize) {
        self.cursor = column.min(self.cells.len());
        self.went_back |= self.cursor == 0 && self.printed > 0;
    }

    /// Erases the text from a column on, and moves there because no text is left to be in.
    pub(super) fn erase_from(&mut self, column: usize) {
        if column == 0 && !self.cells.is_empty() {
            self.overwrite(self.cells.len());
        }
        self.remove_from(column);
    }

    /// The first `count` cells are the text that is overwritten.
    fn overwrite(&mut self, count: usize) {
        self.overwritten.clear();
        self.overwritten.extend_from_slice(&self.cells[..count]);
        (self.printed, self.went_back) = (0, false);
    }

    fn remove_from(&mut self, column: usize) {
        self.cells.truncate(column);
        self.cursor = column;
        self.printed = self.printed.min(column);
        self.kept = self.kept.min(column);
        self.overflowed = false;
    }
}
