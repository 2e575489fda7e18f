//! What a program has made of the terminal it writes to: the alternate screen, a mouse that reports, a
//! hidden cursor.
//!
//! A terminal that shows a program from the middle of its output has to be brought to where the
//! program believes it is, and brought back when the program is left. Both are written from what
//! was seen, and nothing else is: leaving a screen that was never entered would move the cursor.

use std::collections::BTreeMap;

use super::sequences::Item;

/// All that was changed; the default is a terminal as a shell has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Modes {
    /// The mode by which the alternate screen was entered.
    alternate_screen: Option<u16>,
    /// The sequence that undoes a change, and the one that makes it again.
    changed: BTreeMap<String, String>,
    /// Text has a colour, or had one that was not put back with all others at once.
    coloured: bool,
    /// Kitty's way of reporting keys, one on the other.
    key_flags: Vec<u16>,
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

/// The keypad sends characters.
const KEYPAD_OFF: &str = "\x1b>";
/// Text does not move what follows it.
const INSERT_OFF: &str = "\x1b[4l";
/// The first character set is the usual one.
const LINE_DRAWING_OFF: &str = "\x1b(B";
/// All of the screen scrolls. It also moves the cursor, which is put back.
const REGION_OFF: &str = "\x1b7\x1b[r\x1b8";
/// What a soft reset undoes: not the screen that is shown, nor how mouse and keys report.
const SOFT_RESET: [&str; 10] = [
    KEYPAD_OFF,
    INSERT_OFF,
    LINE_DRAWING_OFF,
    REGION_OFF,
    "\x1b[?1l",
    "\x1b[?5l",
    "\x1b[?6l",
    "\x1b[?7h",
    "\x1b[?9l",
    "\x1b[?25h",
];

impl Modes {
    pub(crate) fn apply(&mut self, item: Item<'_>) {
        match item {
            Item::Csi(all) => self.apply_csi(&Csi::parse(all)),
            Item::Escape([0x1b, keypad @ (b'=' | b'>')]) => {
                self.set(KEYPAD_OFF, (*keypad == b'=').then_some("\x1b="));
            }
            Item::Escape([0x1b, b'(', set]) => {
                self.set(LINE_DRAWING_OFF, (*set == b'0').then_some("\x1b(0"));
            }
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
                self.set(INSERT_OFF, (on == b'h').then_some("\x1b[4h"));
            }
            // A reset has no number but 0.
            (None, b"", b'm') => {
                self.coloured = csi.numbers.iter().any(|byte| !b"0;".contains(byte))
            }
            // It depends on the size, and is the program's to set again.
            (None, b"", b'r') => self.set(REGION_OFF, first.map(|_| "")),
            (None, b" ", b'q') => {
                let style = first.filter(|style| *style > 0);
                self.set("\x1b[0 q", style.map(|style| format!("\x1b[{style} q")));
            }
            (None, b"!", b'p') => self.changed.retain(|off, _| !SOFT_RESET.contains(&off.as_str())),
            // xterm's way of reporting keys.
            (Some(b'>'), b"", b'm') if first == Some(4) => {
                let level = csi.numbers().nth(1).flatten().filter(|level| *level > 0);
                self.set("\x1b[>4m", level.map(|level| format!("\x1b[>4;{level}m")));
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
        let default = DEFAULT_ON.contains(&mode);
        if ALTERNATE_SCREEN.contains(&mode) {
            self.alternate_screen = on.then_some(mode);
        } else if default || DEFAULT_OFF.contains(&mode) {
            let again = if mode == SYNCHRONISED { String::new() } else { private(mode, on) };
            self.set(&private(mode, default), (on != default).then_some(again));
        }
    }

    /// Notes what makes a change again; `None` when it was undone.
    fn set(&mut self, off: &str, on: Option<impl Into<String>>) {
        match on {
            Some(on) => self.changed.insert(off.into(), on.into()),
            None => self.changed.remove(off),
        };
    }

    fn push_key_flags(&mut self, flags: u16) {
        if self.key_flags.len() < MAX_KEY_FLAGS {
            self.key_flags.push(flags);
        }
    }

    /// What brings a terminal as a shell has it to here.
    pub(crate) fn turn_on(&self) -> String {
        // Not every way to get there clears it.
        let screen = self.alternate_screen.map(|mode| format!("\x1b[?{mode}h\x1b[H\x1b[2J"));
        let keys = self.key_flags.iter().map(|flags| format!("\x1b[>{flags}u"));
        screen.into_iter().chain(self.changed.values().cloned()).chain(keys).collect()
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
        text.extend(self.changed.keys().map(String::as_str));
        text + if self.coloured || self.alternate_screen.is_some() { "\x1b[m" } else { "" }
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
        assert!(busy.changed.remove(REGION_OFF).is_some());
        // Colours are the program's, too.
        assert!(std::mem::take(&mut busy.coloured));
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
    fn colours_are_reset_unless_all_of_them_have_been() {
        for (sequences, want) in [
            ("31 39", "\x1b[m"),
            ("0;1", "\x1b[m"),
            ("4:3", "\x1b[m"),
            ("38;5;0", "\x1b[m"),
            ("48;2;0;0;0", "\x1b[m"),
            ("38:2::0:0:0", "\x1b[m"),
            ("53 39", "\x1b[m"),
            ("1;31;44 0", ""),
            ("31 0;0", ""),
            ("31 ;", ""),
            ("31 ", ""),
            ("99999 00", ""),
        ] {
            let sequences = sequences.split(' ').map(|numbers| format!("\x1b[{numbers}m"));
            let sequences: String = sequences.collect();
            assert_eq!(after(&sequences).turn_off(), want, "{sequences:?}");
        }
    }

    #[test]
    fn a_soft_reset_leaves_the_screen_and_how_mouse_and_keys_report() {
        let left = after("\x1b[?1049h\x1b[>4;2m\x1b[2 q\x1b[?1002h\x1b[>1u\x1b[31m");
        assert_eq!(after(&format!("{BUSY}\x1b[?7l\x1b[!p\x1b[?2004l\x1b[?1004l\x1b[?1006l")), left);
    }
}
