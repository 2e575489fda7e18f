//! JSON as Go's decoder takes it, where serde_json's is stricter: text behind the first value is
//! ignored, bytes that are not UTF-8 and unpaired surrogates become U+FFFD, and values may be nested
//! 10,000 levels deep.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer as _, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Deserializer, Error};

/// As Go's decoder has it.
const DEEPEST: usize = 10_000;

/// Reads the object that a text begins with, member by member in order; `null` is one without
/// members. What follows it is not looked at.
pub(super) fn read_members(
    text: &[u8],
    take: impl FnMut(&str, &RawValue) -> Result<(), Error>,
) -> Result<(), Error> {
    let text = repair(text);
    // Checked whole before it is read: an error in its syntax beats one in a type.
    let value = <&RawValue>::deserialize(&mut Deserializer::from_str(&text))?.get();
    if depth(value) > DEEPEST {
        return Err(Error::custom(format!("nested deeper than {DEEPEST} levels")));
    }
    Deserializer::from_str(value).deserialize_any(MembersVisitor(take))
}

struct MembersVisitor<F>(F);

impl<'de, F: FnMut(&str, &RawValue) -> Result<(), Error>> Visitor<'de> for MembersVisitor<F> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<M: MapAccess<'de>>(mut self, mut members: M) -> Result<(), M::Error> {
        while let Some((name, value)) = members.next_entry::<String, &RawValue>()? {
            (self.0)(&name, value).map_err(M::Error::custom)?;
        }
        Ok(())
    }
}

/// JSON with U+FFFD for each byte that is not part of a character, and for each escaped surrogate
/// that is not one of a pair.
pub(super) fn repair(json: &[u8]) -> String {
    let mut text = replace_invalid(json).into_owned();
    let mut at = 0;
    while let Some(escape) = text.bytes().skip(at).position(|byte| byte == b'\\') {
        at += escape;
        at += match (escaped_unit(&text, at), escaped_unit(&text, at + 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                text.replace_range(at + 2..at + 6, "fffd");
                6
            }
            (Some(_) | None, _) => 2,
        };
    }
    text
}

/// The unit of UTF-16 that an escape at this place stands for.
fn escaped_unit(text: &str, at: usize) -> Option<u16> {
    u16::from_str_radix(text.get(at..at + 6)?.strip_prefix("\\u")?, 16).ok()
}

/// Each byte that is not part of a character becomes U+FFFD.
pub(super) fn replace_invalid(text: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(text) {
        return text.into();
    }
    let replaced = |chunk: std::str::Utf8Chunk<'_>| {
        chunk.valid().to_owned() + &"\u{fffd}".repeat(chunk.invalid().len())
    };
    text.utf8_chunks().map(replaced).collect::<String>().into()
}

/// How deep the objects and arrays of a valid value are nested.
fn depth(value: &str) -> usize {
    let (mut depth, mut deepest, mut in_string) = (0_usize, 0, false);
    let mut bytes = value.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => in_string = !in_string,
            b'\\' => _ = bytes.next(),
            b'[' | b'{' if !in_string => depth += 1,
            b']' | b'}' if !in_string => depth -= 1,
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The members, with their values as they came.
    fn members(text: &[u8]) -> Result<Vec<(String, String)>, Error> {
        let mut members = Vec::new();
        read_members(text, |name, value| {
            members.push((name.to_owned(), value.get().to_owned()));
            Ok(())
        })?;
        Ok(members)
    }

    fn check_text(json: &[u8], want: &str) {
        assert_eq!(serde_json::from_str::<String>(&repair(json)).unwrap(), want);
    }

    #[test]
    fn a_value_ends_where_it_ends_and_nothing_behind_it_counts() {
        for value in ["{}", "[]", "0", "-1.5e+3", "\"a\\\"b\"", "true", "null", "[1, {\"a\":[]}]"] {
            let want = vec![("a".to_owned(), value.to_owned())];
            assert_eq!(members(format!("{{\"a\":{value}}}").as_bytes()).unwrap(), want);
            let with_more = format!(" \n\t{{ \"a\" : {value} }} xyz");
            assert_eq!(members(with_more.as_bytes()).unwrap(), want);
        }
        for text in ["{}}", "{}{", "{}[", "null", "nullx", "null["] {
            assert_eq!(members(text.as_bytes()).unwrap(), []);
        }
    }

    #[test]
    fn what_is_not_json_is_refused() {
        let texts = [
            "",
            " \n\t ",
            "{\"command\":\"tr",
            "{\"command\":\"true\"",
            "{invalid",
            "{\"a\":}",
            "{\"a\":1 /*c*/}",
            "{\"a\" 1}",
            "{\"a\":1,}",
            "{\"\tunknown\":1}",
            "\u{feff}{}",
        ];
        let values = [
            "tru",
            "[1 2]",
            "\"a\nb\"",
            "\"\\x\"",
            "\"\\u12\"",
            "'a'",
            "-x",
            "[01]",
            "1.x",
            "1e+x",
        ];
        let values = values.map(|value| format!("{{\"a\":{value}}}"));
        for text in texts.into_iter().chain(values.iter().map(String::as_str)) {
            let error = members(text.as_bytes()).expect_err(text);
            assert!(!error.to_string().is_empty(), "{text}");
        }
        assert!(members(b"{\xff}").is_err());
    }

    #[test]
    fn ten_thousand_levels_are_taken_and_one_more_is_not() {
        let taken = |text: String| members(text.as_bytes()).is_ok();
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        let object = |levels: usize| format!("{{\"[[\\\"[\":{}}}", nested(levels));
        assert!(taken(object(9_999)));
        assert!(!taken(object(10_000)));
        assert!(taken(format!("{{}}{}", nested(10_001))), "behind the value");
    }

    #[test]
    fn escapes_stand_for_their_characters() {
        check_text(br#""\"\\\/\b\f\n\r\t\u0041\u00e9""#, "\"\\/\u{8}\u{c}\n\r\tA\u{e9}");
        check_text(br#""\ud83d\ude00 \\u0041 \u2028""#, "\u{1f600} \\u0041 \u{2028}");
        check_text(br#""\\ud800 \\\ud800""#, "\\ud800 \\\u{fffd}");
    }

    #[test]
    fn half_a_character_is_replaced_and_what_follows_it_is_not() {
        check_text(br#""\ud800""#, "\u{fffd}");
        check_text(br#""\ud800\u0041""#, "\u{fffd}A");
        check_text(br#""\ud800\ud83d\ude00""#, "\u{fffd}\u{1f600}");
        check_text(br#""\ude00x""#, "\u{fffd}x");
        check_text(br#""\ud800\n\udfff""#, "\u{fffd}\n\u{fffd}");
    }

    #[test]
    fn every_byte_that_is_no_character_is_replaced() {
        check_text(b"\"a\xff\xfeb\"", "a\u{fffd}\u{fffd}b");
        check_text(b"\"\xf0\x9f\x98\"", "\u{fffd}\u{fffd}\u{fffd}");
        check_text(b"\"\xed\xa0\x80\\n\"", "\u{fffd}\u{fffd}\u{fffd}\n");
        assert_eq!(replace_invalid(b"\xc0\x80 \xe2\x80"), "\u{fffd}\u{fffd} \u{fffd}\u{fffd}");
    }
}
