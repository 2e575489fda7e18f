//! What a program writes to its terminal, told apart: text, and the sequences that do something.
//!
//! It knows how sequences begin and end (ECMA-48, as xterm reads them), not what they do.

/// One thing that came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Item<'a> {
    /// A character to show, or one byte of it.
    Text(&'a [u8]),
    /// A control character.
    Control(u8),
    /// `ESC [` … with its last byte; all of it.
    Csi(&'a [u8]),
    /// `ESC` and what follows, other than the above and below; all of it.
    Escape(&'a [u8]),
    /// A title, a clipboard, a picture: something between `ESC ]` and the like and its end.
    String,
}

#[derive(Debug, Default)]
pub(crate) struct Sequences {
    state: Within,
    /// The bytes of the sequence that is incomplete; in text, those of what ended last.
    bytes: Vec<u8>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Within {
    #[default]
    Text,
    Escape,
    Csi,
    String,
    /// In a string, after an `ESC` that may start its end.
    StringEscape,
    /// Behind the byte that begins a control character of the second kind (U+0080 to U+009F), which
    /// is another way to write `ESC` and a letter, or a character like ©.
    Lead,
    StringLead,
}

/// No sequence that means anything is longer, but strings may be; of those the beginning is enough.
const MAX_INCOMPLETE: usize = 4096;

const ESC: u8 = 0x1b;
const BEL: u8 = 0x07;
const CAN: u8 = 0x18;
const SUB: u8 = 0x1a;
/// What U+0080 to U+00BF begin with in UTF-8.
const LEAD: u8 = 0xc2;
/// The second byte of U+009C, which ends a string.
const STRING_END: u8 = 0x9c;

impl Sequences {
    /// What this byte brings to its end.
    pub(crate) fn take(&mut self, byte: u8) -> Option<Item<'_>> {
        if self.state == Within::Text {
            self.bytes.clear();
        }
        match (self.state, byte) {
            (Within::Text, LEAD) => self.go_on(byte, Within::Lead),
            (Within::Text, 0x20..=0x7e | 0x80..) => self.end_with(byte, Item::Text),
            (Within::Lead, 0x80..=0x9f) => self.take_after_escape(byte - 0x40),
            (Within::Lead, 0xa0..=0xbf) => self.end_with(byte, Item::Text),
            (Within::String, LEAD) => self.go_on(byte, Within::StringLead),
            (Within::StringLead, STRING_END) => self.end_with(byte, |_| Item::String),
            (Within::StringLead, 0x80..=0xbf) => self.go_on(byte, Within::String),
            // No character after all.
            (Within::Lead, _) => {
                self.forget();
                self.take(byte)
            }
            (Within::StringLead, _) => {
                self.state = Within::String;
                self.take(byte)
            }
            (_, CAN | SUB) => self.forget(),
            (Within::String, ESC) => self.go_on(byte, Within::StringEscape),
            (Within::StringEscape, b'\\') | (Within::String, BEL) => {
                self.end_with(byte, |_| Item::String)
            }
            (Within::String, _) => self.go_on(byte, Within::String),
            (_, ESC) => {
                self.bytes.clear();
                self.go_on(byte, Within::Escape)
            }
            (Within::Text | Within::Escape | Within::Csi, 0..=0x1f | 0x7f) => {
                Some(Item::Control(byte))
            }
            (Within::Escape, b'[') => self.go_on(byte, Within::Csi),
            (Within::Escape, b']' | b'P' | b'X' | b'^' | b'_') => self.go_on(byte, Within::String),
            (Within::Escape, 0x20..=0x2f) => self.go_on(byte, Within::Escape),
            (Within::Csi, 0x20..=0x3f) => self.go_on(byte, Within::Csi),
            (Within::Csi, 0x40..=0x7e) => self.end_with(byte, Item::Csi),
            (Within::Escape, 0x30..=0x7e) => self.end_with(byte, Item::Escape),
            // A string that is broken off by another sequence.
            (Within::StringEscape, _) => self.take_after_escape(byte),
            (Within::Escape | Within::Csi, 0x80..) => self.forget(),
        }
    }

    /// The bytes of a sequence that is incomplete.
    pub(crate) fn incomplete(&self) -> &[u8] {
        if self.state == Within::Text { &[] } else { &self.bytes }
    }

    fn take_after_escape(&mut self, byte: u8) -> Option<Item<'_>> {
        self.bytes = vec![ESC];
        self.state = Within::Escape;
        self.take(byte)
    }

    fn go_on(&mut self, byte: u8, state: Within) -> Option<Item<'_>> {
        self.state = state;
        if self.bytes.len() < MAX_INCOMPLETE {
            self.bytes.push(byte);
        }
        None
    }

    fn end_with<'a>(
        &'a mut self,
        byte: u8,
        item: impl FnOnce(&'a [u8]) -> Item<'a>,
    ) -> Option<Item<'a>> {
        self.state = Within::Text;
        self.bytes.push(byte);
        Some(item(&self.bytes))
    }

    fn forget(&mut self) -> Option<Item<'_>> {
        self.state = Within::Text;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], want: &[&str]) {
        let mut sequences = Sequences::default();
        let mut came = Vec::new();
        for byte in bytes {
            match sequences.take(*byte) {
                Some(Item::Text(all)) => came.push(format!("text {}", all.escape_ascii())),
                Some(Item::Control(byte)) => came.push(format!("control {byte}")),
                Some(Item::Csi(all)) => came.push(format!("csi {}", all.escape_ascii())),
                Some(Item::Escape(all)) => came.push(format!("escape {}", all.escape_ascii())),
                Some(Item::String) => came.push("string".into()),
                None => {}
            }
        }
        assert_eq!(came, want, "{}", bytes.escape_ascii());
    }

    #[test]
    fn text_and_sequences_are_told_apart() {
        check(b"a\r\x1b[1;31mb", &["text a", "control 13", r"csi \x1b[1;31m", "text b"]);
        check(b"\x1b[?1049h\x1b=\x1b(0", &[r"csi \x1b[?1049h", r"escape \x1b=", r"escape \x1b(0"]);
        check(b"\x1b]0;title\x07a\x1bP$q\x1b\\b", &["string", "text a", "string", "text b"]);
    }

    #[test]
    fn controls_of_the_second_kind_are_sequences_and_characters_like_them_are_text() {
        check(b"\xc2\x9b1ma\xc2\x85", &[r"csi \x1b[1m", "text a", r"escape \x1bE"]);
        check(
            b"\xc2\x9d0;t\xc2\xa9\xc2\x9ca\x1b]0;t\xc2\x07b",
            &["string", "text a", "string", "text b"],
        );
        check(b"\xc2\xa9\xc3\x9b", &[r"text \xc2\xa9", r"text \xc3", r"text \x9b"]);
        check(b"\xc2\n\xc2\x1b[m\xc2\xc2\x9bm", &["control 10", r"csi \x1b[m", r"csi \x1b[m"]);
    }

    #[test]
    fn what_is_broken_off_does_not_take_what_follows_with_it() {
        check(b"\x1b[3\x1b[4m", &[r"csi \x1b[4m"]);
        check(b"\x1b]0;ti\x1b[4mx", &[r"csi \x1b[4m", "text x"]);
        check(b"\x1b[3\x18x\x1b]0;\x18y", &["text x", "text y"]);
        check(b"\x1b[3\ny", &["control 10", r"csi \x1b[3y"]);
    }

    #[test]
    fn what_has_not_ended_is_kept_and_is_bounded() {
        let mut sequences = Sequences::default();
        for byte in b"a\x1b[m\x1b[38;5" {
            sequences.take(*byte);
        }
        assert_eq!(sequences.incomplete(), b"\x1b[38;5");
        for byte in std::iter::repeat_n(b'0', 10_000) {
            sequences.take(byte);
        }
        assert_eq!(sequences.incomplete().len(), MAX_INCOMPLETE);
    }
}
