//! What a program has made of the terminal it writes to: another screen, a mouse that reports, a
//! hidden cursor.
//!
//! A terminal that shows a program from the middle of its output has to be brought to where the
//! program believes it is, and brought back when the program is left. Both are written from what
//! was seen, and nothing else is: leaving a screen that was never entered would move the cursor.

use std::collections::BTreeSet;

use super::colours::Colours;
use super::sequences::Item;

/// All that was changed; the default is a terminal as a shell has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Modes {
    /// The mode by which the other screen was entered.
    other_screen: Option<u16>,
    /// Of the private modes below, which are not as usual.
    changed: BTreeSet<u16>,
    switched: BTreeSet<Switch>,
    colours: Colours,
    cursor_style: Option<u16>,
    /// xterm's way of reporting keys.
    modify_other_keys: Option<u16>,
    /// Kitty's, one on the other.
    key_flags: Vec<u16>,
}

/// What is on or off and has sequences of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Switch {
    /// The keypad sends sequences.
    Keypad,
    /// Text moves what is behind it.
    Insert,
    /// The first character set is not the usual one.
    LineDrawing,
    /// Not all of the screen scrolls.
    Region,
}

/// How a program uses the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Drawing {
    /// Line after line, as a shell does.
    Lines,
    /// It has the whole of another screen, and draws it again when it is given another size.
    Screen,
}

const OTHER_SCREEN: [u16; 3] = [47, 1047, 1049];
/// Wrapping at the end of a line, and the cursor.
const USUALLY_ON: [u16; 2] = [7, 25];
/// Cursor keys, reverse, origin; mouse reports and their forms; focus; pasting; updates that are
/// shown at once; light and dark.
const USUALLY_OFF: [u16; 16] =
    [1, 5, 6, 9, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 2004, 2026, 2031];
/// An update that is held back is over when its program is left, and is not begun for it.
const SYNCHRONISED: u16 = 2026;
/// As many as Kitty itself keeps, or more.
const MOST_KEY_FLAGS: usize = 16;

impl Modes {
    pub(crate) fn see(&mut self, item: Item<'_>) {
        match item {
            Item::Csi(all) => self.see_csi(&Csi::of(all)),
            Item::Escape(b"\x1b=") => self.turn(Switch::Keypad, true),
            Item::Escape(b"\x1b>") => self.turn(Switch::Keypad, false),
            Item::Escape([0x1b, b'(', set]) => self.turn(Switch::LineDrawing, *set == b'0'),
            Item::Escape(b"\x1bc") => *self = Self::default(),
            Item::Escape(_) | Item::Text(_) | Item::Control(_) | Item::String => {}
        }
    }

    pub(crate) fn drawing(&self) -> Drawing {
        self.other_screen.map_or(Drawing::Lines, |_| Drawing::Screen)
    }

    fn see_csi(&mut self, csi: &Csi<'_>) {
        let first = csi.numbers().next().flatten();
        match (csi.prefix, csi.between, csi.last) {
            (Some(b'?'), b"", on @ (b'h' | b'l')) => {
                csi.numbers().flatten().for_each(|mode| self.switch(mode, on == b'h'));
            }
            (None, b"", on @ (b'h' | b'l')) if csi.numbers().any(|mode| mode == Some(4)) => {
                self.turn(Switch::Insert, on == b'h');
            }
            (None, b"", b'm') => self.colours.see(csi.numbers),
            (None, b"", b'r') => self.turn(Switch::Region, first.is_some()),
            (None, b" ", b'q') => self.cursor_style = first.filter(|style| *style > 0),
            (None, b"!", b'p') => self.soft_reset(),
            (Some(b'>'), b"", b'm') if first == Some(4) => {
                self.modify_other_keys = csi.numbers().nth(1).flatten().filter(|level| *level > 0);
            }
            (Some(b'>'), b"", b'u') => self.push_key_flags(first.unwrap_or(0)),
            (Some(b'<'), b"", b'u') => {
                let left = self.key_flags.len().saturating_sub(first.unwrap_or(1).max(1).into());
                self.key_flags.truncate(left);
            }
            (Some(b'='), b"", b'u') => {
                self.key_flags.pop();
                self.push_key_flags(first.unwrap_or(0));
            }
            _ => {}
        }
    }

    fn switch(&mut self, mode: u16, on: bool) {
        if OTHER_SCREEN.contains(&mode) {
            self.other_screen = on.then_some(mode);
        } else if USUALLY_ON.contains(&mode) || USUALLY_OFF.contains(&mode) {
            match on == USUALLY_ON.contains(&mode) {
                true => self.changed.remove(&mode),
                false => self.changed.insert(mode),
            };
        }
    }

    fn turn(&mut self, switch: Switch, on: bool) {
        match on {
            true => self.switched.insert(switch),
            false => self.switched.remove(&switch),
        };
    }

    fn push_key_flags(&mut self, flags: u16) {
        if self.key_flags.len() < MOST_KEY_FLAGS {
            self.key_flags.push(flags);
        }
    }

    /// It leaves the screen that is shown, and how mouse and keys report, as they are.
    fn soft_reset(&mut self) {
        self.changed.retain(|mode| *mode >= 1000);
        self.switched.clear();
    }

    /// What brings a terminal as a shell has it to here.
    pub(crate) fn turn_on(&self) -> String {
        let mut text = String::new();
        if let Some(mode) = self.other_screen {
            // Not every way to get there clears it.
            text += &format!("\x1b[?{mode}h\x1b[H\x1b[2J");
        }
        for mode in self.changed.iter().filter(|mode| **mode != SYNCHRONISED) {
            text += &private(*mode, !USUALLY_ON.contains(mode));
        }
        self.switched.iter().for_each(|switch| text += switch.on());
        if let Some(style) = self.cursor_style {
            text += &format!("\x1b[{style} q");
        }
        if let Some(level) = self.modify_other_keys {
            text += &format!("\x1b[>4;{level}m");
        }
        self.key_flags.iter().for_each(|flags| text += &format!("\x1b[>{flags}u"));
        text
    }

    /// What brings it back. The usual screen comes with what was saved when it was left, colours and
    /// all, and so before the rest; keys are reported for each screen apart.
    pub(crate) fn turn_off(&self) -> String {
        let mut text = String::new();
        if !self.key_flags.is_empty() {
            text += &format!("\x1b[<{}u", self.key_flags.len());
        }
        if let Some(mode) = self.other_screen {
            text += &private(mode, false);
        }
        text += self.modify_other_keys.map_or("", |_| "\x1b[>4m");
        text += self.cursor_style.map_or("", |_| "\x1b[0 q");
        self.switched.iter().for_each(|switch| text += switch.off());
        self.changed.iter().for_each(|mode| text += &private(*mode, USUALLY_ON.contains(mode)));
        let usual = self.colours.are_usual() && self.other_screen.is_none();
        text + if usual { "" } else { "\x1b[m" }
    }
}

impl Switch {
    fn on(self) -> &'static str {
        match self {
            Self::Keypad => "\x1b=",
            Self::Insert => "\x1b[4h",
            Self::LineDrawing => "\x1b(0",
            // It depends on the size, and is the program's to set again.
            Self::Region => "",
        }
    }

    fn off(self) -> &'static str {
        match self {
            Self::Keypad => "\x1b>",
            Self::Insert => "\x1b[4l",
            Self::LineDrawing => "\x1b(B",
            // It also moves the cursor, which is put back.
            Self::Region => "\x1b7\x1b[r\x1b8",
        }
    }
}

fn private(mode: u16, on: bool) -> String {
    format!("\x1b[?{mode}{}", if on { 'h' } else { 'l' })
}

/// The parts of `ESC [` ….
struct Csi<'a> {
    prefix: Option<u8>,
    numbers: &'a [u8],
    between: &'a [u8],
    last: u8,
}

impl<'a> Csi<'a> {
    fn of(all: &'a [u8]) -> Self {
        let (last, body) = all.split_last().unwrap_or((&0, &[]));
        let body = body.strip_prefix(b"\x1b[").unwrap_or(body);
        let (prefix, body) = match body {
            [prefix @ b'<'..=b'?', body @ ..] => (Some(*prefix), body),
            body => (None, body),
        };
        let at = body.iter().position(|byte| *byte < b'0').unwrap_or(body.len());
        let (numbers, between) = body.split_at(at);
        Self { prefix, numbers, between, last: *last }
    }

    /// `None` for one that is left out, or is none.
    fn numbers(&self) -> impl Iterator<Item = Option<u16>> + use<'a> {
        let numbers = self.numbers.split(|byte| *byte == b';');
        numbers.map(|number| std::str::from_utf8(number).ok()?.parse().ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attach::sequences::Sequences;

    fn after(bytes: &str) -> Modes {
        let (mut sequences, mut modes) = (Sequences::default(), Modes::default());
        for byte in bytes.bytes() {
            if let Some(item) = sequences.take(byte) {
                modes.see(item);
            }
        }
        modes
    }

    /// What vim, less, htop and editors that know Kitty's keys write when they begin.
    const BUSY: &str = "\x1b[?1049h\x1b[22;0;0t\x1b[>4;2m\x1b[?1h\x1b=\x1b[?2004h\x1b[?1004h\x1b[1;24r\
                        \x1b[?12h\x1b[?25l\x1b[2 q\x1b[?1002;1006h\x1b[>1u\x1b[4h\x1b(0\x1b[31m";

    #[test]
    fn a_plain_program_has_changed_nothing() {
        let modes = after("$ ls\r\n\x1b[01;34mfolder\x1b[0m\x1b[K\r\n\x1b]0;title\x07$ ");
        assert_eq!(modes, Modes::default());
        assert_eq!((modes.turn_on().as_str(), modes.turn_off().as_str()), ("", ""));
    }

    #[test]
    fn what_was_turned_on_can_be_turned_on_again() {
        let mut busy = after(BUSY);
        assert_eq!(busy.drawing(), Drawing::Screen);
        let again = after(&busy.turn_on());
        assert!(busy.switched.remove(&Switch::Region));
        // Colours are the program's, too.
        assert!(!std::mem::take(&mut busy.colours).are_usual());
        assert_eq!(again, busy);
    }

    #[test]
    fn what_was_turned_on_is_turned_off_and_nothing_else() {
        assert_eq!(after(&format!("{BUSY}{}", after(BUSY).turn_off())), Modes::default());
        assert_eq!(after("\x1b[?25l").turn_off(), "\x1b[?25h");
        assert_eq!(after("\x1b[0m\x1b[1;31m").turn_off(), "\x1b[m");
        assert_eq!(after("\x1b[?25l\x1b[?2004h\x1b[?25h\x1b[?2004l").turn_off(), "");
        assert_eq!(after(&format!("{BUSY}\x1bc")), Modes::default());
        // Colours that were saved with the usual screen are back with it.
        assert_eq!(after("\x1b[31m\x1b[?1049h").turn_off(), "\x1b[?1049l\x1b[m");
        // The cursor's blinking is the user's own choice.
        assert_eq!(after("\x1b[?12h"), Modes::default());
    }

    #[test]
    fn keys_are_reported_one_way_on_the_other() {
        assert_eq!(after("\x1b[>1u\x1b[>5u\x1b[<u").key_flags, [1]);
        assert_eq!(after("\x1b[>1u\x1b[=7u").key_flags, [7]);
        assert!(after("\x1b[<9u").key_flags.is_empty());
        assert_eq!(after(&"\x1b[>1u".repeat(1000)).key_flags.len(), MOST_KEY_FLAGS);
    }
}
