//! The keys that detach, found among those for the process.

use std::fmt;
use std::str::FromStr;

/// Pressed one after the other; none if there is no way but the process's end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DetachKey(Vec<u8>);

/// What is typed, on its way to the process.
#[derive(Debug)]
pub(crate) struct Keys {
    detach: DetachKey,
    /// What may become the detach key: each key, and the bytes that it came as.
    held: Vec<(u8, Vec<u8>)>,
}

/// What came of some input.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Typed {
    /// For the process.
    pub(crate) input: Vec<u8>,
    /// It ended with the detach key.
    pub(crate) detached: bool,
}

const ESC: u8 = 0x1b;

impl Keys {
    pub(crate) fn new(detach: DetachKey) -> Self {
        Self { detach, held: Vec::new() }
    }

    /// Held keys are released if they turn out not to be the detach key; input after it is
    /// dropped.
    pub(crate) fn take(&mut self, mut bytes: &[u8]) -> Typed {
        let DetachKey(wanted) = &self.detach;
        let mut input = Vec::new();
        while !bytes.is_empty() {
            let (key, len) = first_key(bytes);
            self.held.push((key, bytes[..len].to_vec()));
            bytes = &bytes[len..];
            while !begins_with(wanted, &self.held) {
                input.extend(self.held.remove(0).1);
            }
            if !wanted.is_empty() && self.held.len() == wanted.len() {
                return Typed { input, detached: true };
            }
        }
        Typed { input, detached: false }
    }
}

fn begins_with(wanted: &[u8], held: &[(u8, Vec<u8>)]) -> bool {
    held.len() <= wanted.len() && held.iter().zip(wanted).all(|((key, _), want)| key == want)
}

/// The first key of some input and how many bytes it has. A program may have asked for another form
/// of keys with Ctrl; it is known here when all of it comes at once, so that ESC never waits.
fn first_key(bytes: &[u8]) -> (u8, usize) {
    let whole = bytes.strip_prefix(b"\x1b[").and_then(|rest| {
        let len = rest.iter().position(|byte| !matches!(byte, b'0'..=b';'))?;
        Some((&rest[..len], rest[len], len + 3))
    });
    let key = whole.and_then(|(numbers, last, len)| Some((with_ctrl(numbers, last)?, len)));
    key.unwrap_or((bytes.first().copied().unwrap_or(ESC), 1))
}

/// `92;5u` is Kitty's form, `27;5;92~` xterm's.
fn with_ctrl(numbers: &[u8], last: u8) -> Option<u8> {
    const CTRL: u32 = 4;
    const LOCKS: u32 = 64 | 128;
    const RELEASED: u32 = 3;
    let parts: Vec<&str> = std::str::from_utf8(numbers).ok()?.split(';').collect();
    let ((b'u', [key, modifiers, ..]) | (b'~', ["27", modifiers, key, ..])) = (last, &*parts)
    else {
        return None;
    };
    // Behind a colon: another name of the key, and what happened to it.
    let [mut key, mut modifiers] =
        [key, modifiers].map(|part| part.split(':').map(|number| number.parse::<u32>().ok()));
    let held = modifiers.next()??.checked_sub(1)?;
    let happened = modifiers.next().flatten();
    let key = char::from_u32(key.next()??)
        .filter(|_| held & !LOCKS == CTRL && happened != Some(RELEASED));
    control(key?)
}

/// What Ctrl makes of a character.
fn control(of: char) -> Option<u8> {
    let of = u8::try_from(of).ok()?.to_ascii_uppercase();
    matches!(of, b'@'..=b'_').then_some(of ^ 0x40)
}

impl FromStr for DetachKey {
    type Err = String;

    /// `ctrl-\`, `ctrl-p,ctrl-q`, `ctrl-a,d` or `none`.
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self(Vec::new()));
        }
        let keys = text.split(',').map(key).collect::<Option<Vec<u8>>>();
        match keys.filter(|keys| keys[0] < b' ') {
            Some(keys) if keys.contains(&ESC) => {
                Err("ctrl-[ is Escape, which also starts every arrow key".into())
            }
            Some(keys) => Ok(Self(keys)),
            None => {
                Err("expected ctrl- and a letter or one of @ \\ ] ^ _, further keys after commas \
                         (ctrl-p,ctrl-q), or none"
                    .into())
            }
        }
    }
}

fn key(text: &str) -> Option<u8> {
    let after_ctrl = text.get(..5).filter(|ctrl| ctrl.eq_ignore_ascii_case("ctrl-"));
    let mut rest = after_ctrl.map_or(text, |_| &text[5..]).chars();
    match (rest.next(), rest.next(), after_ctrl) {
        (Some(of), None, Some(_)) => control(of),
        (Some(plain @ ' '..='~'), None, None) => u8::try_from(plain).ok(),
        _ => None,
    }
}

impl fmt::Display for DetachKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(keys) = self;
        let names = keys.iter().map(|key| match key {
            0..=0x1f => format!("Ctrl-{}", char::from(key ^ 0x40)),
            plain => char::from(*plain).to_string(),
        });
        out.write_str(&names.collect::<Vec<_>>().join(" "))
    }
}

impl Default for DetachKey {
    /// That of dtach and abduco: no shell edits with it, and editors hardly use it. What it does on
    /// a terminal, `lastbyte signal ID QUIT` does too.
    fn default() -> Self {
        Self(vec![b'\\' ^ 0x40])
    }
}

impl DetachKey {
    pub(crate) fn is_none(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> Keys {
        Keys::new(text.parse().unwrap())
    }

    fn input(bytes: &[u8]) -> Typed {
        Typed { input: bytes.to_vec(), detached: false }
    }

    fn detach(bytes: &[u8]) -> Typed {
        Typed { input: bytes.to_vec(), detached: true }
    }

    #[test]
    fn the_key_detaches_and_what_was_typed_before_is_input() {
        assert_eq!(keys(r"ctrl-\").take(b"ab\x1ccd"), detach(b"ab"));
        assert_eq!(keys(r"ctrl-\").take(b"abcd"), input(b"abcd"));
        assert_eq!(keys("none").take(b"ab\x1ccd"), input(b"ab\x1ccd"));
    }

    #[test]
    fn keys_one_behind_the_other_may_come_apart_and_are_input_when_they_do_not_go_on() {
        let mut keys = keys("ctrl-p,ctrl-q");
        assert_eq!(keys.take(b"a\x10"), input(b"a"));
        assert_eq!(keys.take(b"\x10"), input(b"\x10"));
        assert_eq!(keys.take(b"x"), input(b"\x10x"));
        assert_eq!(keys.take(b"\x10"), input(b""));
        assert_eq!(keys.take(b"\x11"), detach(b""));
    }

    #[test]
    fn a_key_that_comes_twice_before_the_last_is_found_behind_one_too_many() {
        assert_eq!(keys("ctrl-a,ctrl-a,d").take(b"\x01\x01\x01d"), detach(b"\x01"));
    }

    #[test]
    fn the_forms_that_programs_ask_for_are_the_same_key() {
        for form in ["\x1b[92;5u", "\x1b[92;69u", "\x1b[92:124;5:1u", "\x1b[27;5;92~"] {
            let typed = format!("a{form}");
            assert_eq!(keys(r"ctrl-\").take(typed.as_bytes()), detach(b"a"), "{typed:?}");
        }
        for other in ["\x1b[92;5:3u", "\x1b[92;1u", "\x1b[92;7u", "\x1b[93;5u", "\x1b[A", "\x1b["] {
            assert_eq!(
                keys(r"ctrl-\").take(other.as_bytes()),
                input(other.as_bytes()),
                "{other:?}"
            );
        }
    }

    #[test]
    fn a_key_is_named_as_it_is_pressed() {
        for (text, name) in [
            (r"ctrl-\", r"Ctrl-\"),
            ("Ctrl-p,ctrl-Q", "Ctrl-P Ctrl-Q"),
            ("ctrl-a,d", "Ctrl-A d"),
            ("ctrl-]", "Ctrl-]"),
            ("none", ""),
        ] {
            assert_eq!(text.parse::<DetachKey>().unwrap().to_string(), name, "{text}");
        }
        for text in
            ["", "d", "ctrl-", "ctrl-ab", "ctrl-ä", "ctrl-a,", "q,ctrl-a", "alt-x", "ctrl-1"]
        {
            let error = text.parse::<DetachKey>().unwrap_err();
            assert!(
                error.starts_with("expected ctrl- and a letter or one of @ \\ ] ^ _, "),
                "{text}"
            );
        }
    }

    #[test]
    fn a_key_that_others_begin_with_is_refused() {
        for text in ["ctrl-[", "ctrl-a,ctrl-["] {
            assert!(text.parse::<DetachKey>().is_err(), "{text}");
        }
        let error = "ctrl-[".parse::<DetachKey>().unwrap_err();
        assert_eq!(error, "ctrl-[ is Escape, which also starts every arrow key");
    }
}
