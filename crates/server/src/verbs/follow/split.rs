//! Bytes as text as far as they are text, and as they are from there on.

use std::str;

use lastbyte_output::decode::unfinished;

use super::Cut;

/// What may come behind the last byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    /// The rest of a character whose beginning is there.
    More,
    Nothing,
}

/// How many bytes at the end are the beginning of a character whose rest may still come. Only where
/// characters are kept whole: bytes that came at different times are told apart even within one.
pub(super) fn held_back(bytes: &[u8], cut: Cut, after: After) -> usize {
    match (cut, after) {
        (Cut::Characters, After::More) => unfinished(bytes),
        (Cut::Stamps | Cut::Streams | Cut::Anywhere, _) | (Cut::Characters, After::Nothing) => 0,
    }
}

/// The text that the bytes begin with, and the rest. What follows a bad byte is not looked at, so
/// that there are at most two pieces, however text and other bytes are mixed.
pub fn split(bytes: &[u8]) -> (&str, &[u8]) {
    let valid = match str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
    };
    (valid, &bytes[valid.len()..])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn passed_on(bytes: &[u8], after: After) -> (&str, &[u8]) {
        split(&bytes[..bytes.len() - held_back(bytes, Cut::Characters, after)])
    }

    fn check(bytes: &[u8], after: After, want: (&str, &[u8])) {
        assert_eq!(passed_on(bytes, after), want, "{bytes:x?} {after:?}");
    }

    #[test]
    fn a_character_is_held_back_until_its_end_can_be_there() {
        check("é".as_bytes(), After::More, ("é", b""));
        check(b"a\xC3", After::More, ("a", b""));
        check(b"\xC3", After::More, ("", b""));
        check(b"a\xC3", After::Nothing, ("a", b"\xC3"));
    }

    #[test]
    fn a_bad_byte_loses_nothing() {
        check(b"a\xFFb", After::More, ("a", b"\xFFb"));
        check(b"\xFF\xC3", After::More, ("", b"\xFF"));
        check(b"", After::Nothing, ("", b""));
    }

    proptest! {
        #[test]
        fn bytes_in_any_pieces_come_out_as_they_were(
            bytes in prop::collection::vec(any::<u8>(), 0..40),
            size in 4usize..9,
        ) {
            let mut out = Vec::new();
            while out.len() < bytes.len() {
                let end = bytes.len().min(out.len() + size);
                let after = if end < bytes.len() { After::More } else { After::Nothing };
                let (text, rest) = passed_on(&bytes[out.len()..end], after);
                prop_assert!(text.len() + rest.len() > 0, "it goes on");
                out.extend_from_slice(text.as_bytes());
                out.extend_from_slice(rest);
            }
            prop_assert_eq!(out, bytes);
        }
    }
}
