//! Characters into edits of a line, escape sequences taken out (ECMA-48, as terminals read it).
//!
//! Known are CSI sequences, strings (OSC, DCS, SOS, PM, APC) up to BEL or ST, and escapes of two or
//! more characters. A byte from 0x80 to 0x9F that is no part of a character introduces one too.
//! Of a sequence without end, no more than a bounded number of characters is taken out.

use super::cells::Edit;
use crate::decode::Decoded;

const LONGEST_SEQUENCE: usize = 64;
const LONGEST_STRING: usize = 64 * 1024;

/// What a character does.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Act {
    Edit(Edit),
    EndLine,
}

#[derive(Debug, Default)]
pub(super) struct Escapes {
    state: State,
    /// How many characters the sequence has.
    length: usize,
    /// What stands between `CSI` and the last character.
    parameters: String,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    /// Behind ESC.
    Escape,
    /// Behind ESC and a character that wants another.
    LongEscape,
    Csi,
    String,
}

impl Escapes {
    pub(super) fn take(&mut self, decoded: Decoded) -> Option<Act> {
        match decoded {
            Decoded::Bad(byte @ 0x80..0xA0) => {
                self.enter(State::Escape);
                self.take_character(char::from(byte - 0x40))
            }
            Decoded::Bad(_) | Decoded::Char(_) => self.take_character(decoded.character()),
        }
    }

    fn take_character(&mut self, character: char) -> Option<Act> {
        self.length += 1;
        match (character, self.state) {
            ('\n', _) => {
                self.enter(State::Text);
                Some(Act::EndLine)
            }
            ('\x1b', _) => self.enter(State::Escape),
            // CAN and SUB break a sequence off.
            ('\x18' | '\x1a', _) => self.enter(State::Text),
            (_, State::Text) => plain(character),
            (_, State::String) if self.length > LONGEST_STRING => self.end_with(character),
            ('\x07', State::String) => self.enter(State::Text),
            (_, State::String) => None,
            // Other control characters do what they do in the midst of a sequence.
            ('\0'..' ', _) => plain(character),
            (_, _) if self.length > LONGEST_SEQUENCE => self.end_with(character),
            ('[', State::Escape) => self.enter(State::Csi),
            (']' | 'P' | 'X' | '^' | '_', State::Escape) => self.enter(State::String),
            (' '..='/', State::Escape) => self.enter(State::LongEscape),
            (' '..='/', State::LongEscape) => None,
            ('0'..='~', State::Escape | State::LongEscape) => self.enter(State::Text),
            (' '..='?', State::Csi) => {
                self.parameters.push(character);
                None
            }
            ('@'..='~', State::Csi) => {
                let edit = self.command(character);
                self.enter(State::Text);
                edit.map(Act::Edit)
            }
            (_, State::Escape | State::LongEscape | State::Csi) => self.end_with(character),
        }
    }

    fn enter(&mut self, state: State) -> Option<Act> {
        self.state = state;
        self.length = 0;
        self.parameters.clear();
        None
    }

    /// Ends the sequence with a character that is not part of it.
    fn end_with(&mut self, character: char) -> Option<Act> {
        self.enter(State::Text);
        plain(character)
    }

    /// The edit that a CSI sequence asks for, if it is one within the line.
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

/// What a character does outside of sequences.
fn plain(character: char) -> Option<Act> {
    match character {
        '\r' => Some(Act::Edit(Edit::MoveTo(0))),
        '\x08' => Some(Act::Edit(Edit::Back(1))),
        '\t' => Some(Act::Edit(Edit::Print('\t'))),
        _ if character.is_control() => None,
        _ => Some(Act::Edit(Edit::Print(character))),
    }
}
