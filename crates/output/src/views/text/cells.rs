//! The cells of one line.

/// The most characters kept of a line.
const MAX_CELLS: usize = 65_536;

/// A line with a cursor that is in the text or directly after it, so that the cost of a change does
/// not depend on the length of the line.
#[derive(Debug, Default)]
pub(super) struct Cells {
    cells: Vec<char>,
    cursor: usize,
    /// Whether characters after the last cell are missing.
    pub(super) overflowed: bool,
}

impl Cells {
    /// Returns the text and leaves an empty line.
    pub(super) fn take_text(&mut self) -> String {
        let text = self.cells.iter().collect();
        self.erase_from(0);
        text
    }

    pub(super) fn print(&mut self, character: char) {
        if let Some(cell) = self.cells.get_mut(self.cursor) {
            *cell = character;
        } else if self.cells.len() < MAX_CELLS {
            self.cells.push(character);
        } else {
            self.overflowed = true;
            return;
        }
        self.cursor += 1;
    }

    /// The column of the cursor, counted from 0.
    pub(super) fn cursor(&self) -> usize {
        self.cursor
    }

    /// Moves to a column, or to the end of the text if that is nearer.
    pub(super) fn move_to(&mut self, column: usize) {
        self.cursor = column.min(self.cells.len());
    }

    /// Erases the text from a column on, and moves there because no text is left to be in.
    pub(super) fn erase_from(&mut self, column: usize) {
        self.cells.truncate(column);
        self.cursor = column;
        self.overflowed = false;
    }
}
