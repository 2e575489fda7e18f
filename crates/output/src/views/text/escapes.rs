//! Turns the characters of a line into edits and removes escape sequences (ECMA-48, as terminals
//! read it).
//!
//! It knows CSI sequences, strings (OSC, DCS, SOS, PM, APC) up to BEL or ST, and escapes of two or
//! more characters. A byte from 0x80 to 0x9F outside of a character starts a sequence too. Only a
//! bounded number of characters is removed for a sequence that never ends.
//!
//! The parser is our own because the `vte` crate starts no sequence at such a byte, drops other
//! characters within a sequence, and removes an unfinished sequence without bound.

use super::cells::Edit;

const LONGEST_SEQUENCE: usize = 64;
const LONGEST_STRING: usize = 64 * 1024;

#[derive(Debug, Default)]
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
    /// Takes a character, or the first byte of an invalid sequence.
    pub(super) fn push(&mut self, decoded: Result<char, u8>) -> Option<Edit> {
        if let Err(byte @ 0x80..0xA0) = decoded {
            self.enter(EscapeState::Escape);
            return self.push_character(char::from(byte - 0x40));
        }
        self.push_character(decoded.unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn push_character(&mut self, character: char) -> Option<Edit> {
        use EscapeState::{Csi, Escape, LongEscape, String, Text};
        self.length += 1;
        match (character, self.state) {
            ('\x1b', _) => self.enter(Escape),
            // CAN and SUB abort a sequence.
            ('\x18' | '\x1a', _) => self.enter(Text),
            (_, Text) => plain(character),
            (_, String) if self.length > LONGEST_STRING => self.end_with(character),
            ('\x07', String) => self.enter(Text),
            (_, String) => None,
            // Other control characters take effect within a sequence.
            ('\0'..' ', _) => plain(character),
            (_, _) if self.length > LONGEST_SEQUENCE => self.end_with(character),
            ('[', Escape) => self.enter(Csi),
            (']' | 'P' | 'X' | '^' | '_', Escape) => self.enter(String),
            (' '..='/', Escape) => self.enter(LongEscape),
            (' '..='/', LongEscape) => None,
            ('0'..='~', Escape | LongEscape) => self.enter(Text),
            (' '..='?', Csi) => {
                self.parameters.push(character);
                None
            }
            ('@'..='~', Csi) => {
                let edit = self.command(character);
                self.enter(Text);
                edit
            }
            (_, Escape | LongEscape | Csi) => self.end_with(character),
        }
    }

    fn enter(&mut self, state: EscapeState) -> Option<Edit> {
        self.state = state;
        self.length = 0;
        self.parameters.clear();
        None
    }

    /// Ends the sequence with a character that is not part of it.
    fn end_with(&mut self, character: char) -> Option<Edit> {
        self.enter(EscapeState::Text);
        plain(character)
    }

    /// The edit of a CSI sequence that changes only its line.
    fn command(&self, last: char) -> Option<Edit> {
        let number = match self.parameters.as_str() {
            "" => 0,
            parameters => parameters.parse::<usize>().ok()?,
        };
        match (last, number) {
            ('K', 0) => Some(Edit::EraseRest),
            ('K', 2) => Some(Edit::EraseAll),
            ('G', column) => Some(Edit::MoveTo(column.saturating_sub(1))),
            ('C', count) => Some(Edit::Forward(count.max(1))),
            ('D', count) => Some(Edit::Back(count.max(1))),
            _ => None,
        }
    }
}

/// The edit of a character outside of sequences.
fn plain(character: char) -> Option<Edit> {
    match character {
        '\r' => Some(Edit::MoveTo(0)),
        '\x08' => Some(Edit::Back(1)),
        '\t' => Some(Edit::Print('\t')),
        _ if character.is_control() => None,
        _ => Some(Edit::Print(character)),
    }
}
