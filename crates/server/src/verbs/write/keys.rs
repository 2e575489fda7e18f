//! Keys by name, and the bytes that xterm sends for them.

use lastbyte_wire::Error;

use crate::from_wire::invalid;

/// Where keys are typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Typed {
    /// On a terminal, with the cursor keys as its program wants them.
    Terminal(CursorKeys),
    /// Into a pipe, which knows no keys, only characters.
    Pipe,
}

/// Which of its two forms an unmodified cursor key has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CursorKeys {
    Normal,
    Application,
}

/// A key, and what is held down with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    base: Base,
    held: Held,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Base {
    Char(char),
    Enter,
    Tab,
    Escape,
    Backspace,
    /// Up, Down, Right, Left, Home, End: by the letter that ends their sequence.
    Cursor(char),
    /// F1 to F4, by the letter that ends their sequence.
    LetterFunction(char),
    /// Those that end with `~`, by the number before it.
    Numbered(u8),
}

/// The modifiers. Their sum and 1 is how xterm numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Held(u8);

impl Held {
    const NONE: Self = Self(0);
    const SHIFT: Self = Self(1);
    const META: Self = Self(2);
    const CONTROL: Self = Self(4);

    fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

const VALID: &str = "a key is a character or one of Enter, Tab, Escape, Space, Comma, Backspace, Delete, \
                     Insert, Home, End, PageUp, PageDown, Up, Down, Left, Right, F1 to F12, with \
                     modifiers before it: C- (control), M- (meta, alt), S- (shift), as in C-c, M-Left, \
                     S-Tab";

/// Named as tmux, emacs and people do, without regard to case.
const NAMES: [(&str, Base); 43] = [
    ("enter", Base::Enter),
    ("return", Base::Enter),
    ("ret", Base::Enter),
    ("tab", Base::Tab),
    ("escape", Base::Escape),
    ("esc", Base::Escape),
    ("space", Base::Char(' ')),
    ("spc", Base::Char(' ')),
    ("comma", Base::Char(',')),
    ("backspace", Base::Backspace),
    ("bspace", Base::Backspace),
    ("insert", Base::Numbered(2)),
    ("ins", Base::Numbered(2)),
    ("ic", Base::Numbered(2)),
    ("delete", Base::Numbered(3)),
    ("del", Base::Numbered(3)),
    ("dc", Base::Numbered(3)),
    ("pageup", Base::Numbered(5)),
    ("pgup", Base::Numbered(5)),
    ("ppage", Base::Numbered(5)),
    ("prior", Base::Numbered(5)),
    ("pagedown", Base::Numbered(6)),
    ("pgdn", Base::Numbered(6)),
    ("npage", Base::Numbered(6)),
    ("next", Base::Numbered(6)),
    ("up", Base::Cursor('A')),
    ("down", Base::Cursor('B')),
    ("right", Base::Cursor('C')),
    ("left", Base::Cursor('D')),
    ("end", Base::Cursor('F')),
    ("home", Base::Cursor('H')),
    ("f1", Base::LetterFunction('P')),
    ("f2", Base::LetterFunction('Q')),
    ("f3", Base::LetterFunction('R')),
    ("f4", Base::LetterFunction('S')),
    ("f5", Base::Numbered(15)),
    ("f6", Base::Numbered(17)),
    ("f7", Base::Numbered(18)),
    ("f8", Base::Numbered(19)),
    ("f9", Base::Numbered(20)),
    ("f10", Base::Numbered(21)),
    ("f11", Base::Numbered(23)),
    ("f12", Base::Numbered(24)),
];

/// The long ones without regard to case.
const MODIFIERS: [(&str, Held); 7] = [
    ("control", Held::CONTROL),
    ("ctrl", Held::CONTROL),
    ("meta", Held::META),
    ("alt", Held::META),
    ("option", Held::META),
    ("opt", Held::META),
    ("shift", Held::SHIFT),
];

impl Key {
    pub(super) fn parse(name: &str) -> Result<Self, Error> {
        let unknown = || invalid(format!("unknown key {name:?}")).hint(VALID);
        let (mut held, mut rest) = (Held::NONE, name);
        while let Some((modifier, behind)) = modifier(rest) {
            (held, rest) = (held.with(modifier), behind);
        }
        let base = named(rest).or_else(|| only_char(rest)).ok_or_else(unknown)?;
        Ok(Self { base, held: if is_back_tab(rest) { held.with(Held::SHIFT) } else { held } })
    }

    /// Whether its bytes depend on what the program asked of the terminal.
    pub(super) fn depends_on_mode(self) -> bool {
        matches!(self.base, Base::Cursor(_)) && self.held == Held::NONE
    }

    /// The bytes of this key, which was called `name`.
    pub(super) fn bytes(self, name: &str, typed: Typed) -> Result<Vec<u8>, Error> {
        match typed {
            Typed::Terminal(cursor) => self.on_terminal(cursor).ok_or_else(|| {
                invalid(format!("a terminal has no bytes for the key {name:?}"))
                    .hint("leave out a modifier")
            }),
            Typed::Pipe => self.in_pipe().ok_or_else(|| {
                invalid(format!("the key {name:?} cannot be typed without a terminal"))
                    .hint(self.instead())
            }),
        }
    }

    fn on_terminal(self, cursor: CursorKeys) -> Option<Vec<u8>> {
        let Self { base, held } = self;
        let number = held.0 + 1;
        let sequence = match base {
            Base::Cursor(letter) if held == Held::NONE => match cursor {
                CursorKeys::Normal => format!("\x1b[{letter}"),
                CursorKeys::Application => format!("\x1bO{letter}"),
            },
            Base::LetterFunction(letter) if held == Held::NONE => format!("\x1bO{letter}"),
            Base::Cursor(letter) | Base::LetterFunction(letter) => {
                format!("\x1b[1;{number}{letter}")
            }
            Base::Numbered(code) if held == Held::NONE => format!("\x1b[{code}~"),
            Base::Numbered(code) => format!("\x1b[{code};{number}~"),
            Base::Char(_) | Base::Enter | Base::Tab | Base::Escape | Base::Backspace => {
                let meta = if held.has(Held::META) { "\x1b" } else { "" };
                format!("{meta}{}", self.character()?)
            }
        };
        Some(sequence.into_bytes())
    }

    /// Those that are a character or a control character, whatever meta does.
    fn character(self) -> Option<String> {
        let held = self.held.without(Held::META);
        Some(match (self.base, held) {
            (Base::Enter, Held::NONE) => "\r".into(),
            (Base::Tab, Held::NONE) => "\t".into(),
            (Base::Tab, Held::SHIFT) => "\x1b[Z".into(),
            (Base::Escape, Held::NONE) => "\x1b".into(),
            (Base::Backspace, Held::NONE) => "\x7f".into(),
            (Base::Backspace, Held::CONTROL) => "\x08".into(),
            (Base::Char(char), Held::NONE) => char.into(),
            (Base::Char(char), Held::SHIFT) if char.is_alphabetic() => {
                char.to_uppercase().collect()
            }
            (Base::Char(char), held) if held.has(Held::CONTROL) => {
                char::from(control_character(char)?).into()
            }
            _ => return None,
        })
    }

    fn in_pipe(self) -> Option<Vec<u8>> {
        match self {
            Self { base: Base::Enter, held: Held::NONE } => Some(b"\n".into()),
            Self { base: Base::Char(_) | Base::Tab, held: Held::NONE | Held::SHIFT } => {
                let character = self.character()?;
                (!character.starts_with('\x1b')).then(|| character.into_bytes())
            }
            _ => None,
        }
    }

    /// What to do where there is no terminal.
    fn instead(self) -> &'static str {
        match (self.base, self.held) {
            (Base::Char('c' | 'C'), Held::CONTROL) => "send the signal INT instead",
            (Base::Char('\\'), Held::CONTROL) => "send the signal QUIT instead",
            (Base::Char('z' | 'Z'), Held::CONTROL) => "send the signal TSTP instead",
            (Base::Char('d' | 'D'), Held::CONTROL) => "close its standard input instead",
            _ => "start the command on a terminal",
        }
    }
}

/// As tmux calls shift and tab.
fn is_back_tab(name: &str) -> bool {
    name.eq_ignore_ascii_case("btab") || name.eq_ignore_ascii_case("backtab")
}

fn named(name: &str) -> Option<Base> {
    if is_back_tab(name) {
        return Some(Base::Tab);
    }
    NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, base)| *base)
}

fn only_char(text: &str) -> Option<Base> {
    let mut chars = text.chars();
    let first = chars.next().filter(|char| !char.is_control())?;
    chars.next().is_none().then_some(Base::Char(first))
}

/// The modifier that a name begins with, and what follows it.
fn modifier(name: &str) -> Option<(Held, &str)> {
    if let Some(behind) = name.strip_prefix('^').filter(|behind| behind.chars().count() == 1) {
        return Some((Held::CONTROL, behind));
    }
    // A separator that ends the name is the key itself. A `+` in a query is a space.
    let at = name.find(['-', '+', ' ']).filter(|at| *at > 0 && at + 1 < name.len())?;
    let (word, behind) = (&name[..at], &name[at + 1..]);
    let held = match word {
        "C" | "c" => Held::CONTROL,
        "M" | "A" | "m" => Held::META,
        "S" | "s" => Held::SHIFT,
        _ => MODIFIERS.iter().find(|(known, _)| known.eq_ignore_ascii_case(word))?.1,
    };
    Some((held, behind))
}

/// As the keyboard of a terminal makes them.
fn control_character(char: char) -> Option<u8> {
    match char {
        '@'..='_' | 'a'..='z' => Some(char as u8 & 0x1f),
        ' ' => Some(0),
        '/' => Some(0x1f),
        '?' => Some(0x7f),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(name: &str, typed: Typed) -> Result<Vec<u8>, Error> {
        Key::parse(name)?.bytes(name, typed)
    }

    fn check(name: &str, want: &str) {
        let bytes = typed(name, Typed::Terminal(CursorKeys::Normal));
        assert_eq!(bytes.map(|bytes| bytes.escape_ascii().to_string()), Ok(want.into()), "{name}");
    }

    #[test]
    fn each_key_is_what_xterm_sends() {
        for (name, want) in [
            ("a", "a"),
            ("Z", "Z"),
            ("ü", "\\xc3\\xbc"),
            ("-", "-"),
            ("+", "+"),
            ("^", "^"),
            ("Space", " "),
            ("Comma", ","),
            ("Enter", "\\r"),
            ("RET", "\\r"),
            ("Tab", "\\t"),
            ("Esc", "\\x1b"),
            ("Escape", "\\x1b"),
            ("Backspace", "\\x7f"),
            ("BSpace", "\\x7f"),
            ("Delete", "\\x1b[3~"),
            ("Insert", "\\x1b[2~"),
            ("PageUp", "\\x1b[5~"),
            ("NPage", "\\x1b[6~"),
            ("Up", "\\x1b[A"),
            ("Down", "\\x1b[B"),
            ("Right", "\\x1b[C"),
            ("Left", "\\x1b[D"),
            ("Home", "\\x1b[H"),
            ("End", "\\x1b[F"),
            ("F1", "\\x1bOP"),
            ("F4", "\\x1bOS"),
            ("F5", "\\x1b[15~"),
            ("F6", "\\x1b[17~"),
            ("F10", "\\x1b[21~"),
            ("F11", "\\x1b[23~"),
            ("F12", "\\x1b[24~"),
        ] {
            check(name, want);
        }
    }

    #[test]
    fn modifiers_may_be_spelled_as_people_do() {
        for name in ["C-c", "C-C", "c-c", "ctrl+c", "ctrl c", "Ctrl-C", "CONTROL-c", "^C", "^c"] {
            check(name, "\\x03");
        }
        for (name, want) in [
            ("C-a", "\\x01"),
            ("C-z", "\\x1a"),
            ("C-[", "\\x1b"),
            ("C-\\", "\\x1c"),
            ("C-Space", "\\x00"),
            ("C-@", "\\x00"),
            ("C-_", "\\x1f"),
            ("^?", "\\x7f"),
            ("C-Backspace", "\\x08"),
            ("S-a", "A"),
            ("M-x", "\\x1bx"),
            ("Alt+x", "\\x1bx"),
            ("M-Enter", "\\x1b\\r"),
            ("M--", "\\x1b-"),
            ("C-M-a", "\\x1b\\x01"),
            ("S-Tab", "\\x1b[Z"),
            ("BTab", "\\x1b[Z"),
            ("shift+tab", "\\x1b[Z"),
            ("S-Up", "\\x1b[1;2A"),
            ("M-Left", "\\x1b[1;3D"),
            ("C-Right", "\\x1b[1;5C"),
            ("C-S-End", "\\x1b[1;6F"),
            ("C-M-S-Home", "\\x1b[1;8H"),
            ("S-F1", "\\x1b[1;2P"),
            ("C-F5", "\\x1b[15;5~"),
            ("C-Delete", "\\x1b[3;5~"),
        ] {
            check(name, want);
        }
    }

    #[test]
    fn every_control_character_is_a_letter_and_31() {
        for letter in 'a'..='z' {
            let byte = letter as u8 - b'a' + 1;
            let bytes = typed(&format!("C-{letter}"), Typed::Terminal(CursorKeys::Normal));
            assert_eq!(bytes, Ok(vec![byte]));
        }
    }

    #[test]
    fn a_program_that_asked_for_it_gets_the_other_cursor_keys() {
        let check = |name, want: &[u8]| {
            let bytes = typed(name, Typed::Terminal(CursorKeys::Application));
            assert_eq!(bytes.as_deref(), Ok(want), "{name}");
            assert_eq!(Key::parse(name).map(Key::depends_on_mode), Ok(want[1] == b'O'));
        };
        check("Up", b"\x1bOA");
        check("Home", b"\x1bOH");
        check("C-Up", b"\x1b[1;5A");
        check("Delete", b"\x1b[3~");
    }

    #[test]
    fn what_is_no_key_is_refused_with_all_that_are() {
        for name in
            ["", "Foo", "C-", "ctrl", "F13", "F0", "ab", "X-a", "C-Foo", "\u{3}", "C-c-", "^^^"]
        {
            let error = Key::parse(name).expect_err(name);
            assert!(error.message.contains(&format!("{name:?}")), "{error:?}");
            assert!(error.hint.is_some_and(|hint| hint.contains("PageUp")));
        }
        for name in ["C-1", "S-1", "C-Enter", "S-Escape", "C-ü"] {
            assert!(typed(name, Typed::Terminal(CursorKeys::Normal)).is_err(), "{name}");
        }
    }

    #[test]
    fn a_pipe_takes_characters_and_says_what_to_do_instead_of_others() {
        for (name, want) in [("a", "a"), ("S-a", "A"), ("Enter", "\n"), ("Tab", "\t"), ("SPC", " ")]
        {
            assert_eq!(typed(name, Typed::Pipe).as_deref(), Ok(want.as_bytes()), "{name}");
        }
        for (name, hint) in [
            ("C-c", "signal INT"),
            ("^\\", "signal QUIT"),
            ("C-z", "signal TSTP"),
            ("C-d", "close"),
            ("Up", "terminal"),
            ("Escape", "terminal"),
            ("S-Tab", "terminal"),
            ("M-x", "terminal"),
        ] {
            let error = typed(name, Typed::Pipe).expect_err(name);
            assert!(error.hint.is_some_and(|it| it.contains(hint)), "{name}");
        }
    }
}
