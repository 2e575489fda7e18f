//! The cells of one line.

/// The most characters kept of a line.
const MAX_CELLS: usize = 65_536;

/// A change to a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Edit {
    Print(char),
    /// Moves to a column, counted from 0.
    MoveTo(usize),
    Back(usize),
    Forward(usize),
    EraseRest,
    /// Erases the whole line and moves to its start, because no text is left to be in.
    EraseAll,
}

/// A line with a cursor that is in the text or directly after it, so that the cost of an edit does
/// not depend on the length of the line.
#[derive(Debug, Default)]
pub(super) struct Cells {
    cells: Vec<char>,
    cursor: usize,
    overflowed: bool,
}

impl Cells {
    pub(super) fn apply(&mut self, edit: Edit) {
        match edit {
            Edit::Print(character) => self.print(character),
            Edit::MoveTo(column) => self.cursor = column.min(self.cells.len()),
            Edit::Back(count) => self.cursor = self.cursor.saturating_sub(count),
            Edit::Forward(count) => {
                self.cursor = self.cursor.saturating_add(count).min(self.cells.len());
            }
            Edit::EraseRest => self.erase_from(self.cursor),
            Edit::EraseAll => self.erase_from(0),
        }
    }

    /// Whether characters after the last cell are missing.
    pub(super) fn overflowed(&self) -> bool {
        self.overflowed
    }

    /// Returns the text and leaves an empty line.
    pub(super) fn take_text(&mut self) -> String {
        let text = self.cells.iter().collect();
        self.erase_from(0);
        text
    }

    fn print(&mut self, character: char) {
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

    fn erase_from(&mut self, column: usize) {
        self.cells.truncate(column);
        self.cursor = column;
        self.overflowed = false;
    }
}
