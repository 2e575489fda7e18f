//! Turns the characters of a line into changes of its cells and removes escape sequences (ECMA-48, as terminals
//! read it).
//!
//! It knows CSI sequences, strings (OSC, DCS, SOS, PM, APC) up to BEL or ST, and escapes of two or
//! more characters. A byte from 0x80 to 0x9F outside of a character starts a sequence too. Only a
//! bounded number of characters is removed for a sequence that never ends.
//!
//! The parser is our own because the `vte` crate starts no sequence at such a byte, drops other
//! characters within a sequence, and removes an unfinished sequence without bound.

use std::ops::Range;

use super::cells::{Cell, Cells};

const LONGEST_SEQUENCE: usize = 64;
const LONGEST_STRING: usize = 64 * 1024;

#[derive(Debug, Clone, Default)]
pub(super) struct Escapes {
    state: EscapeState,
    /// How many characters the sequence has.
    length: usize,
    /// The characters between `CSI` and the final one.
    parameters: String,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum EscapeState {
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// After ESC and an intermediate character.
    LongEscape,
    Csi,
    String,
}

impl Escapes {
    pub(super) fn is_text(&self) -> bool {
        self.state == EscapeState::Text
    }

    /// Takes a character, or the first byte of an invalid sequence, and its range in the log.
    pub(super) fn push(
        &mut self,
        decoded: Result<char, u8>,
        Range { start, end }: Range<u64>,
        cells: &mut Cells,
    ) {
        let character = if let Err(byte @ 0x80..0xA0) = decoded {
            self.enter(EscapeState::Escape);
            char::from(byte - 0x40)
        } else {
            decoded.unwrap_or(char::REPLACEMENT_CHARACTER)
        };
        self.push_cell(Cell { character, start, end }, cells);
    }

    fn push_cell(&mut self, cell: Cell, cells: &mut Cells) {
        use EscapeState::{Csi, Escape, LongEscape, String, Text};
        self.length += 1;
        match (cell.character, self.state) {
            ('\x1b', _) => self.enter(Escape),
            // CAN and SUB abort a sequence.
            ('\x18' | '\x1a', _) => self.enter(Text),
            (_, Text) => plain(cell, cells),
            (_, String) if self.length > LONGEST_STRING => self.end_with(cell, cells),
            ('\x07', String) => self.enter(Text),
            (_, String) => {}
            // Other control characters take effect within a sequence.
            ('\0'..' ', _) => plain(cell, cells),
            (_, _) if self.length > LONGEST_SEQUENCE => self.end_with(cell, cells),
            ('[', Escape) => self.enter(Csi),
            (']' | 'P' | 'X' | '^' | '_', Escape) => self.enter(String),
            (' '..='/', Escape) => self.enter(LongEscape),
            (' '..='/', LongEscape) => {}
            ('0'..='~', Escape | LongEscape) => self.enter(Text),
            (' '..='?', Csi) => self.parameters.push(cell.character),
            ('@'..='~', Csi) => {
                self.command(cell.character, cells);
                self.enter(Text);
            }
            (_, Escape | LongEscape | Csi) => self.end_with(cell, cells),
        }
    }

    fn enter(&mut self, state: EscapeState) {
        self.state = state;
        self.length = 0;
        self.parameters.clear();
    }

    /// Ends the sequence with a character that is not part of it.
    fn end_with(&mut self, cell: Cell, cells: &mut Cells) {
        self.enter(EscapeState::Text);
        plain(cell, cells);
    }

    /// Applies a CSI sequence that changes only its line.
    fn command(&self, last: char, cells: &mut Cells) {
        let number = match self.parameters.as_str() {
            "" => Ok(0),
            parameters => parameters.parse::<usize>(),
        };
        match (last, number) {
            ('K', Ok(0)) => cells.erase_from(cells.cursor()),
            ('K', Ok(2)) => cells.erase_from(0),
            ('G', Ok(column)) => cells.move_to(column.saturating_sub(1)),
            ('C', Ok(count)) => cells.move_to(cells.cursor().saturating_add(count.max(1))),
            ('D', Ok(count)) => cells.move_to(cells.cursor().saturating_sub(count.max(1))),
            _ => {}
        }
    }
}

/// Applies a character outside of sequences.
fn plain(cell: Cell, cells: &mut Cells) {
    match cell.character {
        '\r' => cells.move_to(0),
        '\x08' => cells.move_to(cells.cursor().saturating_sub(1)),
        '\t' => cells.print(cell),
        character if character.is_control() => {}
        _ => cells.print(cell),
    }
}
