//! Bytes into characters, whatever pieces they come in.
//!
//! A bad byte spoils nothing around it: each maximal run of bytes that starts like a character and
//! is none becomes one U+FFFD, exactly as `String::from_utf8_lossy` does over the whole. A
//! character that a chunk border falls into is held until its last byte is there.

use std::{ops::Range, str};

/// The longest character in bytes.
const LONGEST: usize = 4;

/// Decodes lossily, chunk after chunk; any chunking gives the same text.
#[derive(Debug, Default)]
pub struct Decoder {
    assembler: Assembler,
}

impl Decoder {
    /// Appends to `text` what `bytes` completes; an unfinished last character is held back.
    pub fn push(&mut self, bytes: &[u8], text: &mut String) {
        let mut rest = bytes;
        while self.assembler.is_holding()
            && let Some((&byte, after)) = rest.split_first()
        {
            text.extend(self.assembler.take(byte).map(Decoded::character));
            rest = after;
        }
        let (whole, unfinished) = rest.split_at(rest.len() - unfinished(rest));
        text.push_str(&String::from_utf8_lossy(whole));
        for &byte in unfinished {
            text.extend(self.assembler.take(byte).map(Decoded::character));
        }
    }

    /// Says that no more will come: what is held back is bad.
    pub fn finish(mut self, text: &mut String) {
        text.extend(self.assembler.give_up().map(Decoded::character));
    }
}

/// How many bytes at the end of `bytes` are the beginning of a character that may still be
/// completed: 0 to 3.
pub fn unfinished(bytes: &[u8]) -> usize {
    let from = bytes.len().saturating_sub(LONGEST - 1);
    (from..bytes.len()).find(|&at| is_beginning(&bytes[at..])).map_or(0, |at| bytes.len() - at)
}

/// The character that lies on both sides of a cut before `bytes[at]`, if there is one.
pub fn character_across(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    (at.saturating_sub(LONGEST - 1)..at).find_map(|start| {
        let end = start + width(bytes[start])?;
        let whole = end > at && str::from_utf8(bytes.get(start..end)?).is_ok();
        whole.then_some(start..end)
    })
}

/// A step of decoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decoded {
    Char(char),
    /// A bad sequence, by its first byte.
    Bad(u8),
}

impl Decoded {
    pub(crate) fn character(self) -> char {
        match self {
            Self::Char(character) => character,
            Self::Bad(_) => char::REPLACEMENT_CHARACTER,
        }
    }
}

/// Puts characters together byte by byte. It holds only what may still become a character.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    held: [u8; LONGEST],
    len: usize,
}

impl Assembler {
    pub(crate) fn is_holding(&self) -> bool {
        self.len > 0
    }

    /// What `byte` completes: a bad sequence that it does not go on with, itself, both or nothing.
    pub(crate) fn take(&mut self, byte: u8) -> impl Iterator<Item = Decoded> + use<> {
        if !self.is_holding() && byte.is_ascii() {
            return None.into_iter().chain(Some(Decoded::Char(char::from(byte))));
        }
        self.held[self.len] = byte;
        self.len += 1;
        let (broken, own) = match self.look() {
            // The byte before was a good beginning, so it is `byte` that does not belong to it.
            Look::Bad if self.len > 1 => {
                let broken = Decoded::Bad(self.held[0]);
                (self.held[0], self.len) = (byte, 1);
                (Some(broken), self.look())
            }
            look => (None, look),
        };
        let own = match own {
            Look::Beginning => None,
            Look::Whole(character) => Some(Decoded::Char(character)),
            Look::Bad => Some(Decoded::Bad(byte)),
        };
        if own.is_some() {
            self.len = 0;
        }
        broken.into_iter().chain(own)
    }

    /// What is held when no more will come, as the bad sequence that it then is.
    pub(crate) fn give_up(&mut self) -> Option<Decoded> {
        let first = self.is_holding().then_some(Decoded::Bad(self.held[0]));
        self.len = 0;
        first
    }

    fn look(&self) -> Look {
        let held = &self.held[..self.len];
        match str::from_utf8(held) {
            Ok(text) => text.chars().next().map_or(Look::Beginning, Look::Whole),
            Err(_) if is_beginning(held) => Look::Beginning,
            Err(_) => Look::Bad,
        }
    }
}

enum Look {
    Beginning,
    Whole(char),
    Bad,
}

/// Whether more bytes could make one character of these.
fn is_beginning(bytes: &[u8]) -> bool {
    str::from_utf8(bytes)
        .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
}

/// How long a character is that starts with this byte; a continuation starts none.
fn width(first: u8) -> Option<usize> {
    match first {
        0x00..0x80 => Some(1),
        0xC0..0xE0 => Some(2),
        0xE0..0xF0 => Some(3),
        0xF0..=0xFF => Some(4),
        0x80..0xC0 => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(chunks: &[&[u8]]) -> String {
        let (mut decoder, mut text) = (Decoder::default(), String::new());
        for chunk in chunks {
            decoder.push(chunk, &mut text);
        }
        decoder.finish(&mut text);
        text
    }

    #[test]
    fn a_character_in_two_chunks_is_one_character() {
        assert_eq!(decode(&[b"caf\xC3", b"\xA9!"]), "café!");
        assert_eq!(decode(&[b"\xF0", b"\x9F", b"\x98", b"\x80"]), "😀");
    }

    #[test]
    fn a_bad_byte_spoils_nothing_around_it() {
        assert_eq!(decode(&[b"a\xFFb"]), "a\u{FFFD}b");
        assert_eq!(decode(&[b"\xE2\x82", b"a"]), "\u{FFFD}a");
        assert_eq!(decode(&[b"\xE2", b"\xE2\x82\xAC"]), "\u{FFFD}€");
        assert_eq!(decode(&[b"\xED", b"\xA0", b"\x80"]), "\u{FFFD}\u{FFFD}\u{FFFD}");
    }

    #[test]
    fn a_character_that_never_ends_is_one_bad_sequence() {
        assert_eq!(decode(&[b"a\xF0\x9F", b"\x98"]), "a\u{FFFD}");
    }

    #[test]
    fn an_unfinished_character_is_told_from_a_bad_one() {
        let cases: [(&[u8], usize); 7] = [
            (b"", 0),
            (b"abc", 0),
            ("é".as_bytes(), 0),
            (b"a\xC3", 1),
            (b"\xF0\x9F\x98", 3),
            (b"a\x80", 0),
            (b"\xF0\x80", 0),
        ];
        for (bytes, want) in cases {
            assert_eq!(unfinished(bytes), want, "{bytes:x?}");
        }
    }

    #[test]
    fn a_cut_through_a_character_is_seen_and_one_through_bad_bytes_is_not() {
        assert_eq!(character_across("a€b".as_bytes(), 2), Some(1..4));
        assert_eq!(character_across("a€b".as_bytes(), 3), Some(1..4));
        assert_eq!(character_across("a€b".as_bytes(), 1), None);
        assert_eq!(character_across("a€b".as_bytes(), 4), None);
        assert_eq!(character_across(b"a\xE2\x82b", 2), None);
        assert_eq!(character_across(b"a\xE2\x82", 2), None);
    }
}
