//! What a program has made of the terminal it writes to: the alternate screen, a mouse that reports, a
//! hidden cursor.
//!
//! A terminal that shows a program from the middle of its output has to be brought to where the
//! program believes it is, and brought back when the program is left. Both are written from what
//! was seen, and nothing else is: leaving a screen that was never entered would move the cursor.

use std::collections::BTreeSet;

use super::sequences::Item;

/// All that was changed; the default is a terminal as a shell has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Modes {
    /// The mode by which the alternate screen was entered.
    alternate_screen: Option<u16>,
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

/// Switches that have their own sequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Switch {
    /// The keypad sends sequences.
    Keypad,
    /// Insert mode: text moves what follows it.
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
    /// It has the whole of the alternate screen, and draws it again when it is given another size.
    Screen,
}

const ALTERNATE_SCREEN: [u16; 3] = [47, 1047, 1049];
/// Wrapping at the end of a line, and the cursor.
const DEFAULT_ON: [u16; 2] = [7, 25];
/// Cursor keys, reverse, origin; mouse reports and their forms; focus; pasting; updates that are
/// shown at once; light and dark.
const DEFAULT_OFF: [u16; 16] =
    [1, 5, 6, 9, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 2004, 2026, 2031];
/// An update that is held back is over when its program is left, and is not begun for it.
const SYNCHRONISED: u16 = 2026;
/// As many as Kitty itself keeps, or more.
const MAX_KEY_FLAGS: usize = 16;

impl Modes {
    pub(crate) fn apply(&mut self, item: Item<'_>) {
        match item {
            Item::Csi(all) => self.apply_csi(&Csi::parse(all)),
            Item::Escape(b"\x1b=") => self.turn(Switch::Keypad, true),
            Item::Escape(b"\x1b>") => self.turn(Switch::Keypad, false),
            Item::Escape([0x1b, b'(', set]) => self.turn(Switch::LineDrawing, *set == b'0'),
            Item::Escape(b"\x1bc") => *self = Self::default(),
            Item::Escape(_) | Item::Text(_) | Item::Control(_) | Item::String => {}
        }
    }

    pub(crate) fn drawing(&self) -> Drawing {
        self.alternate_screen.map_or(Drawing::Lines, |_| Drawing::Screen)
    }

    fn apply_csi(&mut self, csi: &Csi<'_>) {
        let first = csi.numbers().next().flatten();
        match (csi.prefix, csi.between, csi.last) {
            (Some(b'?'), b"", on @ (b'h' | b'l')) => {
                csi.numbers().flatten().for_each(|mode| self.switch(mode, on == b'h'));
            }
            (None, b"", on @ (b'h' | b'l')) if csi.numbers().any(|mode| mode == Some(4)) => {
                self.turn(Switch::Insert, on == b'h');
            }
            (None, b"", b'm') => self.colours.apply(csi.numbers),
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
        if ALTERNATE_SCREEN.contains(&mode) {
            self.alternate_screen = on.then_some(mode);
        } else if DEFAULT_ON.contains(&mode) || DEFAULT_OFF.contains(&mode) {
            if on == DEFAULT_ON.contains(&mode) {
                self.changed.remove(&mode)
            } else {
                self.changed.insert(mode)
            };
        }
    }

    fn turn(&mut self, switch: Switch, on: bool) {
        if on {
            self.switched.insert(switch)
        } else {
            self.switched.remove(&switch)
        };
    }

    fn push_key_flags(&mut self, flags: u16) {
        if self.key_flags.len() < MAX_KEY_FLAGS {
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
        if let Some(mode) = self.alternate_screen {
            // Not every way to get there clears it.
            text += &format!("\x1b[?{mode}h\x1b[H\x1b[2J");
        }
        for mode in self.changed.iter().filter(|mode| **mode != SYNCHRONISED) {
            text += &private(*mode, !DEFAULT_ON.contains(mode));
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

    /// What brings it back. The main screen comes with what was saved when it was left, colours and
    /// all, and so before the rest; keys are reported for each screen apart.
    pub(crate) fn turn_off(&self) -> String {
        let mut text = String::new();
        if !self.key_flags.is_empty() {
            text += &format!("\x1b[<{}u", self.key_flags.len());
        }
        if let Some(mode) = self.alternate_screen {
            text += &private(mode, false);
        }
        text += self.modify_other_keys.map_or("", |_| "\x1b[>4m");
        text += self.cursor_style.map_or("", |_| "\x1b[0 q");
        self.switched.iter().for_each(|switch| text += switch.off());
        self.changed.iter().for_each(|mode| text += &private(*mode, DEFAULT_ON.contains(mode)));
        let usual = self.colours.are_default() && self.alternate_screen.is_none();
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
    fn parse(all: &'a [u8]) -> Self {
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

    /// `None` for one that is left out or invalid.
    fn numbers(&self) -> impl Iterator<Item = Option<u16>> + use<'a> {
        let numbers = self.numbers.split(|byte| *byte == b';');
        numbers.map(|number| std::str::from_utf8(number).ok()?.parse().ok())
    }
}

/// What is not as usual, each by the number that puts it back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Colours(BTreeSet<u16>);

impl Colours {
    pub(crate) fn are_default(&self) -> bool {
        self.0.is_empty()
    }

    /// The numbers of one sequence, with what is between them.
    pub(crate) fn apply(&mut self, numbers: &[u8]) {
        let mut numbers = numbers.split(|byte| *byte == b';');
        while let Some(number) = numbers.next() {
            // Behind a colon: which colour, or which kind of line.
            let parts: Vec<_> = number.split(|byte| *byte == b':').map(value).collect();
            self.set(parts[0]);
            if let ([38 | 48 | 58], Some(form)) = (parts.as_slice(), colour_numbers(&numbers)) {
                numbers.by_ref().take(form).for_each(drop);
            }
        }
    }

    fn set(&mut self, number: u16) {
        let put_back_by = match number {
            0 => return self.0.clear(),
            22..=25 | 27..=29 | 39 | 49 | 59 => {
                self.0.remove(&number);
                return;
            }
            1 | 2 => 22,
            3 => 23,
            4 | 21 => 24,
            5 | 6 => 25,
            7..=9 => number + 20,
            30..=38 | 90..=97 => 39,
            40..=48 | 100..=107 => 49,
            58 => 59,
            // Only by all at once.
            _ => 0,
        };
        self.0.insert(put_back_by);
    }
}

/// One that is left out is 0.
fn value(number: &[u8]) -> u16 {
    match number {
        b"" => 0,
        _ => std::str::from_utf8(number).ok().and_then(|n| n.parse().ok()).unwrap_or(u16::MAX),
    }
}

/// How many follow that say which colour: of a table, or red, green and blue.
fn colour_numbers<'a>(rest: &(impl Iterator<Item = &'a [u8]> + Clone)) -> Option<usize> {
    match rest.clone().next() {
        Some(b"5") => Some(2),
        Some(b"2") => Some(4),
        _ => None,
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
                modes.apply(item);
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
        assert!(!std::mem::take(&mut busy.colours).are_default());
        assert_eq!(again, busy);
    }

    #[test]
    fn what_was_turned_on_is_turned_off_and_nothing_else() {
        assert_eq!(after(&format!("{BUSY}{}", after(BUSY).turn_off())), Modes::default());
        assert_eq!(after("\x1b[?25l").turn_off(), "\x1b[?25h");
        assert_eq!(after("\x1b[0m\x1b[1;31m").turn_off(), "\x1b[m");
        assert_eq!(after("\x1b[?25l\x1b[?2004h\x1b[?25h\x1b[?2004l").turn_off(), "");
        assert_eq!(after(&format!("{BUSY}\x1bc")), Modes::default());
        // Colours that were saved with the main screen are back with it.
        assert_eq!(after("\x1b[31m\x1b[?1049h").turn_off(), "\x1b[?1049l\x1b[m");
        // The cursor's blinking is the user's own choice.
        assert_eq!(after("\x1b[?12h"), Modes::default());
    }

    #[test]
    fn keys_are_reported_one_way_on_the_other() {
        assert_eq!(after("\x1b[>1u\x1b[>5u\x1b[<u").key_flags, [1]);
        assert_eq!(after("\x1b[>1u\x1b[=7u").key_flags, [7]);
        assert!(after("\x1b[<9u").key_flags.is_empty());
        assert_eq!(after(&"\x1b[>1u".repeat(1000)).key_flags.len(), MAX_KEY_FLAGS);
    }

    #[test]
    fn what_was_put_back_one_by_one_or_at_once_is_as_usual() {
        for (sequences, usual) in [
            ("31 39", true),
            ("1;31;44 22;39;49", true),
            ("1;31 39", false),
            ("31 0;0", true),
            ("31 ;", true),
            ("31 ", true),
            ("0;1", false),
            ("4:3 24", true),
            ("38;5;0", false),
            ("38;5;1 39", true),
            ("48;2;0;0;0", false),
            ("38:2::0:0:0", false),
            ("38:2::0:0:0 39", true),
            ("53 39", false),
            ("99999 0", true),
        ] {
            let mut colours = Colours::default();
            sequences.split(' ').for_each(|numbers| colours.apply(numbers.as_bytes()));
            assert_eq!(colours.are_default(), usual, "{sequences:?}");
        }
    }
}
