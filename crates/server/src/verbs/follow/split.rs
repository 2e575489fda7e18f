//! Bytes as text as far as they are text, and as they are from there on.

use std::str;

use lastbyte_output::decode::unfinished;

use super::Cut;

/// Bytes, or what they say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    Text(String),
    Binary(Vec<u8>),
}

/// What may come behind the last byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    /// The rest of a character whose beginning is there.
    More,
    Nothing,
}

/// These bytes as content, each with how many it is made of. Where characters are kept whole, the
/// beginning of one is left out while its rest may come. At most two, however the bytes are mixed: whatever comes
/// behind a bad byte is not looked at.
pub(super) fn split(bytes: &[u8], cut: Cut, after: After) -> [Option<(Content, usize)>; 2] {
    if cut == Cut::Anywhere {
        return [binary(bytes), None];
    }
    let held = match (cut, after) {
        (Cut::Characters, After::More) => unfinished(bytes),
        // Bytes that came at different times are told apart, be it inside a character.
        (Cut::Stamps | Cut::Anywhere, _) | (Cut::Characters, After::Nothing) => 0,
    };
    let bytes = &bytes[..bytes.len() - held];
    let valid = match str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
    };
    let rest = &bytes[valid.len()..];
    let text = (!valid.is_empty()).then(|| (Content::Text(valid.to_owned()), valid.len()));
    [text, binary(rest)]
}

fn binary(bytes: &[u8]) -> Option<(Content, usize)> {
    (!bytes.is_empty()).then(|| (Content::Binary(bytes.to_vec()), bytes.len()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(bytes: &[u8], after: After, want: [Option<Content>; 2]) {
        let parts = split(bytes, Cut::Characters, after);
        assert_eq!(
            parts.map(|part| part.map(|(content, _)| content)),
            want,
            "{bytes:x?} {after:?}"
        );
    }

    fn text(text: &str) -> Option<Content> {
        Some(Content::Text(text.into()))
    }

    fn bad(bytes: &[u8]) -> Option<Content> {
        Some(Content::Binary(bytes.into()))
    }

    #[test]
    fn a_character_is_held_back_until_its_end_can_be_there() {
        check("é".as_bytes(), After::More, [text("é"), None]);
        check(b"a\xC3", After::More, [text("a"), None]);
        check(b"\xC3", After::More, [None, None]);
        check(b"a\xC3", After::Nothing, [text("a"), bad(b"\xC3")]);
    }

    #[test]
    fn a_bad_byte_loses_nothing() {
        check(b"a\xFFb", After::More, [text("a"), bad(b"\xFFb")]);
        check(b"\xFF\xC3", After::More, [None, bad(b"\xFF")]);
        check(b"", After::Nothing, [None, None]);
    }

    proptest! {
        #[test]
        fn bytes_in_any_pieces_come_out_as_they_were(
            bytes in prop::collection::vec(any::<u8>(), 0..40),
            size in 4usize..9,
        ) {
            let (mut at, mut out) = (0, Vec::new());
            while at < bytes.len() {
                let end = bytes.len().min(at + size);
                let after = if end < bytes.len() { After::More } else { After::Nothing };
                for (part, len) in split(&bytes[at..end], Cut::Characters, after).into_iter().flatten() {
                    out.extend(match part {
                        Content::Text(text) => text.into_bytes(),
                        Content::Binary(bytes) => bytes,
                    });
                    at += len;
                }
            }
            prop_assert_eq!(out, bytes);
        }
    }
}
