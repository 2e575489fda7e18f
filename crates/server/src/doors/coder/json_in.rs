//! JSON as Go's decoder takes it, where serde_json's is stricter: text behind the first value is
//! ignored, bytes that are not UTF-8 and unpaired surrogates become U+FFFD, and values may be nested
//! 10,000 levels deep.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error as _, IgnoredAny, Visitor};
use serde_json::Error;

/// As Go's decoder has it.
const DEEPEST: usize = 10_000;

/// A string of a request. Only values that [`first_value`] or [`only_value`] has checked are read
/// into it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Text(pub(super) String);

/// The first value; what follows it is not looked at.
pub(super) fn first_value<T: DeserializeOwned>(text: &[u8]) -> Result<T, Error> {
    let text = replace_invalid(text);
    // Checked whole before it is read: reading a `Text` lets control characters through.
    IgnoredAny::deserialize(&mut serde_json::Deserializer::from_str(&text))?;
    if depth(&text) > DEEPEST {
        return Err(Error::custom(format!("nested deeper than {DEEPEST} levels")));
    }
    T::deserialize(&mut serde_json::Deserializer::from_str(&text))
}

/// A text that is one value and nothing else.
pub(super) fn only_value<T: DeserializeOwned>(text: &[u8]) -> Result<T, Error> {
    let text = replace_invalid(text);
    serde_json::from_str::<IgnoredAny>(&text)?;
    serde_json::from_str(&text)
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

/// How deep the objects and arrays of the first value are nested, which is a valid one.
fn depth(text: &str) -> usize {
    let (mut depth, mut deepest, mut in_string) = (0_usize, 0, false);
    let mut bytes = text.trim_ascii_start().bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => in_string = !in_string,
            b'\\' => _ = bytes.next(),
            _ if in_string => {}
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth -= 1,
            _ => {}
        }
        deepest = deepest.max(depth);
        if depth == 0 {
            break;
        }
    }
    deepest
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(TextVisitor)
    }
}

struct TextVisitor;

impl Visitor<'_> for TextVisitor {
    type Value = Text;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a string")
    }

    /// As bytes, serde_json writes an unpaired surrogate as three bytes that are not UTF-8, of which
    /// only the first is 0xED.
    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Text, E> {
        let mut text = String::with_capacity(bytes.len());
        for chunk in bytes.utf8_chunks() {
            text.push_str(chunk.valid());
            if chunk.invalid().first() == Some(&0xed) {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        Ok(Text(text))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn check_text(json: &[u8], want: &str) {
        assert_eq!(first_value::<Text>(json).unwrap(), Text(want.into()));
    }

    #[test]
    fn a_value_ends_where_it_ends_and_nothing_behind_it_counts() {
        for value in ["{}", "[]", "0", "-1.5e+3", "\"a\\\"b\"", "true", "null", "[1, {\"a\":[]}]"] {
            let want: Value = serde_json::from_str(value).unwrap();
            assert_eq!(first_value::<Value>(value.as_bytes()).unwrap(), want);
            let with_more = format!(" \n\t{value} xyz");
            assert_eq!(first_value::<Value>(with_more.as_bytes()).unwrap(), want);
        }
        for text in ["{}}", "{}{", "{\"a\":1}x", "[][", "nullx", "null["] {
            first_value::<IgnoredAny>(text.as_bytes()).unwrap();
        }
    }

    #[test]
    fn what_is_not_json_is_refused() {
        for text in [
            "",
            " \n\t ",
            "{\"command\":\"tr",
            "{\"command\":\"true\"",
            "tru",
            "{invalid",
            "{\"a\":}",
            "{\"a\":1 /*c*/}",
            "{\"a\" 1}",
            "{\"a\":1,}",
            "[1 2]",
            "\"a\nb\"",
            "{\"\tunknown\":1}",
            "\"\\x\"",
            "\"\\u12\"",
            "'a'",
            "\u{feff}{}",
            "-x",
            "[01]",
            "1.x",
            "1e+x",
        ] {
            let error = first_value::<IgnoredAny>(text.as_bytes()).expect_err(text);
            assert!(!error.to_string().is_empty(), "{text}");
        }
        assert!(first_value::<Text>(b"\"a\nb\"").is_err());
        assert!(first_value::<IgnoredAny>(b"{\xff}").is_err());
    }

    #[test]
    fn ten_thousand_levels_are_taken_and_one_more_is_not() {
        let taken = |text: String| first_value::<IgnoredAny>(text.as_bytes()).is_ok();
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert!(taken(nested(10_000)));
        assert!(!taken(nested(10_001)));
        let object = |levels: usize| format!("{{\"[[\\\"[\":{}}}", nested(levels));
        assert!(taken(object(9_999)));
        assert!(!taken(object(10_000)));
        assert!(taken(format!("{{}}{}", nested(10_001))), "behind the value");
    }

    #[test]
    fn an_only_value_has_nothing_behind_it() {
        assert_eq!(only_value::<Value>(b" [1] ").unwrap(), serde_json::json!([1]));
        assert!(only_value::<Value>(b"[1] x").is_err());
        assert!(only_value::<Value>(b" ").is_err());
        assert!(only_value::<Text>(b"\"\t\"").is_err());
    }

    #[test]
    fn escapes_stand_for_their_characters() {
        check_text(br#""\"\\\/\b\f\n\r\t\u0041\u00e9""#, "\"\\/\u{8}\u{c}\n\r\tA\u{e9}");
        check_text(br#""\ud83d\ude00 \\u0041 \u2028""#, "\u{1f600} \\u0041 \u{2028}");
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
