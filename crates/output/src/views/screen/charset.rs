//! Line drawing characters, which `vt100` does not know: programs that draw boxes switch to another set of characters
//! (`ESC ( 0`) and write letters.

use super::ground::Ground;

/// The sets that are selected. `ESC 7` and `ESC 8`, which save and restore them, are not followed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Charsets {
    /// Whether G0 and G1 are the set for line drawing.
    draws_lines: [bool; 2],
    /// Which of the two is in use.
    used: usize,
    /// Which of the two the sequence under way selects.
    selected: Option<usize>,
    ground: Ground,
}

/// From the grave accent on.
const LINES: [char; 31] = [
    '◆', '▒', '␉', '␌', '␍', '␊', '°', '±', '␤', '␋', '┘', '┐', '┌', '└', '┼', '⎺', '⎻', '─', '⎼',
    '⎽', '├', '┤', '┴', '┬', '│', '≤', '≥', 'π', '≠', '£', '·',
];

impl Charsets {
    /// The bytes, with letters replaced where they stand for lines.
    pub(super) fn translate(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut translated = Vec::with_capacity(bytes.len());
        for byte in bytes.iter().copied() {
            match self.line(byte) {
                Some(line) => translated.extend(line.encode_utf8(&mut [0; 4]).bytes()),
                None => translated.push(byte),
            }
            self.follow(byte);
        }
        translated
    }

    fn line(&self, byte: u8) -> Option<char> {
        let draws = self.ground == Ground::Text && self.draws_lines[self.used];
        let index = byte.checked_sub(b'`').filter(|_| draws)?;
        LINES.get(usize::from(index)).copied()
    }

    fn follow(&mut self, byte: u8) {
        match (self.ground, byte) {
            (Ground::Text, 0x0e) => self.used = 1,
            (Ground::Text, 0x0f) => self.used = 0,
            (Ground::Escape, b'(') => self.selected = Some(0),
            (Ground::Escape, b')') => self.selected = Some(1),
            (Ground::Escape, b'c') => *self = Self { ground: self.ground, ..Self::default() },
            (Ground::LongEscape, b'0'..=b'~') => {
                if let Some(selected) = self.selected.take() {
                    self.draws_lines[selected] = byte == b'0';
                }
            }
            (Ground::Escape, _) => self.selected = None,
            _ => {}
        }
        self.ground = self.ground.after(byte);
    }
}
