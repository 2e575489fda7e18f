//! A value whose syntax was checked: a look at the text, nothing is copied but what is asked for.

use super::scan::split_first;

/// One JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::doors::coder) struct Value<'a>(&'a [u8]);

/// Of what kind a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::doors::coder) enum Kind<'a> {
    Null,
    Bool(bool),
    Number,
    String(Text<'a>),
    Array(Elements<'a>),
    Object(Members<'a>),
}

/// A string with its quotes and escapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::doors::coder) struct Text<'a>(&'a [u8]);

/// The values of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::doors::coder) struct Elements<'a>(&'a [u8]);

/// The keys and values of an object, repeated ones too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::doors::coder) struct Members<'a>(&'a [u8]);

impl<'a> Value<'a> {
    /// Of bytes that the scan has found to be one value.
    pub(super) fn checked(text: &'a [u8]) -> Self {
        Self(text)
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> &'a [u8] {
        self.0
    }

    pub(in crate::doors::coder) fn kind(&self) -> Kind<'a> {
        match self.0.first() {
            Some(b'{') => Kind::Object(Members(self.inside())),
            Some(b'[') => Kind::Array(Elements(self.inside())),
            Some(b'"') => Kind::String(Text(self.inside())),
            Some(b't') => Kind::Bool(true),
            Some(b'f') => Kind::Bool(false),
            Some(b'n') | None => Kind::Null,
            Some(_) => Kind::Number,
        }
    }

    fn inside(&self) -> &'a [u8] {
        self.0.get(1..self.0.len() - 1).unwrap_or_default()
    }
}

impl Kind<'_> {
    /// As Go calls it.
    pub(in crate::doors::coder) fn name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "bool",
            Self::Number => "number",
            Self::String(_) => "string",
            Self::Array(_) => "array",
            Self::Object(_) => "object",
        }
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        let (value, rest) = split_first(behind(self.0, b',')).ok()?;
        self.0 = rest;
        Some(value)
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = (String, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (key, rest) = split_first(behind(self.0, b',')).ok()?;
        let (value, rest) = split_first(behind(rest, b':')).ok()?;
        self.0 = rest;
        Some((Text(key.inside()).decode(), value))
    }
}

/// What follows the separator, if there is one.
fn behind(text: &[u8], separator: u8) -> &[u8] {
    let text = text.trim_ascii_start();
    text.strip_prefix(&[separator]).unwrap_or(text)
}

impl Text<'_> {
    /// Without escapes. What is no character, each byte of it, becomes U+FFFD.
    pub(in crate::doors::coder) fn decode(&self) -> String {
        let mut text = String::with_capacity(self.0.len());
        for chunk in self.0.utf8_chunks() {
            unescape(chunk.valid(), &mut text);
            chunk.invalid().iter().for_each(|_| text.push(char::REPLACEMENT_CHARACTER));
        }
        text
    }
}

fn unescape(mut escaped: &str, text: &mut String) {
    while let Some((plain, rest)) = escaped.split_once('\\') {
        text.push_str(plain);
        let mut rest = rest.chars();
        let character = match rest.next() {
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('u') => {
                let (character, rest) = unicode_escape(rest.as_str());
                text.push(character);
                escaped = rest;
                continue;
            }
            Some(itself) => itself,
            None => char::REPLACEMENT_CHARACTER, // the scan lets none through
        };
        text.push(character);
        escaped = rest.as_str();
    }
    text.push_str(escaped);
}

/// Four hexadecimal digits, and four more behind `\u` where both are one character. Half a
/// character becomes U+FFFD, and what follows it stands for itself.
fn unicode_escape(digits: &str) -> (char, &str) {
    let unit = |text: &str| text.get(..4).and_then(|hex| u16::from_str_radix(hex, 16).ok());
    let Some(first) = unit(digits) else { return (char::REPLACEMENT_CHARACTER, "") };
    let rest = &digits[4..];
    let second = rest.strip_prefix("\\u").and_then(unit);
    let units = [Some(first), second].into_iter().flatten();
    match char::decode_utf16(units).next() {
        Some(Ok(character)) if character.len_utf16() == 2 => (character, &rest[6..]),
        Some(Ok(character)) => (character, rest),
        Some(Err(_)) | None => (char::REPLACEMENT_CHARACTER, rest),
    }
}

#[cfg(test)]
mod tests {
    use super::super::first_value;
    use super::*;

    fn check(text: &[u8], want: &str) {
        let Kind::String(text) = first_value(text).unwrap().kind() else { panic!("no string") };
        assert_eq!(text.decode(), want);
    }

    #[test]
    fn escapes_stand_for_their_characters() {
        check(br#""\"\\\/\b\f\n\r\t\u0041\u00e9""#, "\"\\/\u{8}\u{c}\n\r\tA\u{e9}");
        check(br#""\ud83d\ude00 \\u0041 \u2028""#, "\u{1f600} \\u0041 \u{2028}");
    }

    #[test]
    fn half_a_character_is_replaced_and_what_follows_it_is_not() {
        check(br#""\ud800""#, "\u{fffd}");
        check(br#""\ud800\u0041""#, "\u{fffd}A");
        check(br#""\ud800\ud83d\ude00""#, "\u{fffd}\u{1f600}");
        check(br#""\ude00x""#, "\u{fffd}x");
    }

    #[test]
    fn every_byte_that_is_no_character_is_replaced() {
        check(b"\"a\xff\xfeb\"", "a\u{fffd}\u{fffd}b");
        check(b"\"\xf0\x9f\x98\"", "\u{fffd}\u{fffd}\u{fffd}");
        check(b"\"\xed\xa0\x80\\n\"", "\u{fffd}\u{fffd}\u{fffd}\n");
    }

    #[test]
    fn members_come_in_order_and_more_than_once() {
        let value = first_value(br#"{ "a" : 1 , "b":[{}, 2], "a" :null}"#).unwrap();
        let Kind::Object(members) = value.kind() else { panic!("no object") };
        let members: Vec<_> = members.map(|(key, value)| (key, value.kind().name())).collect();
        let want = [("a", "number"), ("b", "array"), ("a", "null")];
        assert_eq!(members, want.map(|(key, kind)| (key.to_owned(), kind)));
    }

    #[test]
    fn elements_come_in_order() {
        let value = first_value(br#"["x" , {"a":"]"},true,[ ]]"#).unwrap();
        let Kind::Array(elements) = value.kind() else { panic!("no array") };
        let kinds: Vec<_> = elements.map(|value| value.kind().name()).collect();
        assert_eq!(kinds, ["string", "object", "bool", "array"]);
    }
}
