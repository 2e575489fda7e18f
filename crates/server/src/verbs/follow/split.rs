//! Bytes as text as far as they are text, and as base64 from there on.

use std::str;

use lastbyte_output::decode::unfinished;
use lastbyte_wire::Bytes;

/// What may come behind the last byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    /// The rest of a character whose beginning is there.
    More,
    Nothing,
}

/// The words for these bytes, each with how many it is made of. The beginning of a character is
/// left out while its rest may come. At most two, however the bytes are mixed: whatever comes
/// behind a bad byte is not looked at.
pub(super) fn split(bytes: &[u8], after: After) -> [Option<(Bytes, usize)>; 2] {
    let held = match after {
        After::More => unfinished(bytes),
        After::Nothing => 0,
    };
    let bytes = &bytes[..bytes.len() - held];
    let valid = match str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
    };
    let rest = &bytes[valid.len()..];
    let text = (!valid.is_empty()).then(|| (Bytes::Text(valid.to_owned()), valid.len()));
    let base64 = || Bytes::Base64(base64_simd::STANDARD.encode_to_string(rest));
    [text, (!rest.is_empty()).then(|| (base64(), rest.len()))]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(bytes: &[u8], after: After, want: [Option<(&str, usize)>; 2]) {
        let shown = |part: Option<(Bytes, usize)>| {
            part.map(|(bytes, len)| match bytes {
                Bytes::Text(text) => (text, len),
                Bytes::Base64(text) => (format!("={text}"), len),
            })
        };
        let own = |part: Option<(&str, usize)>| part.map(|(text, len)| (text.to_owned(), len));
        assert_eq!(split(bytes, after).map(shown), want.map(own), "{bytes:x?} {after:?}");
    }

    #[test]
    fn a_character_is_held_back_until_its_end_can_be_there() {
        check("é".as_bytes(), After::More, [Some(("é", 2)), None]);
        check(b"a\xC3", After::More, [Some(("a", 1)), None]);
        check(b"\xC3", After::More, [None, None]);
        check(b"a\xC3", After::Nothing, [Some(("a", 1)), Some(("=ww==", 1))]);
    }

    #[test]
    fn a_bad_byte_loses_nothing() {
        check(b"a\xFFb", After::More, [Some(("a", 1)), Some(("=/2I=", 2))]);
        check(b"\xFF\xC3", After::More, [None, Some(("=/w==", 1))]);
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
                for (part, len) in split(&bytes[at..end], after).into_iter().flatten() {
                    out.extend(match part {
                        Bytes::Text(text) => text.into_bytes(),
                        Bytes::Base64(text) => base64_simd::STANDARD.decode_to_vec(text).unwrap(),
                    });
                    at += len;
                }
            }
            prop_assert_eq!(out, bytes);
        }
    }
}
