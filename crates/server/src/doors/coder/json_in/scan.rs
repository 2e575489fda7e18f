//! Finds where the first value of a text ends, and what is wrong with it. Goes as deep as Go does
//! without a stack of calls.

use super::value::Value;
use crate::doors::coder::go_quote::quote_char;

/// What is wrong with a text. The words are Go's; clients show them and do not read them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(in crate::doors::coder) enum Malformed {
    #[error("EOF")]
    Empty,
    #[error("unexpected EOF")]
    Cut,
    #[error("invalid character {} {place}", quote_char(char::from(*byte)))]
    Character { byte: u8, place: &'static str },
}

/// As Go's decoder has it.
const DEEPEST: usize = 10_000;

const BEFORE_VALUE: &str = "looking for beginning of value";
const BEFORE_KEY: &str = "looking for beginning of object key string";

/// The first value; what follows it is not looked at.
pub(in crate::doors::coder) fn first_value(text: &[u8]) -> Result<Value<'_>, Malformed> {
    split_first(text).map(|(value, _)| value)
}

/// A text that is one value and nothing else.
pub(in crate::doors::coder) fn only_value(text: &[u8]) -> Result<Value<'_>, Malformed> {
    let (value, rest) = split_first(text)?;
    let mut behind = Scan { text: rest, at: 0 };
    behind.skip_space();
    match behind.peek() {
        Err(_) => Ok(value),
        Ok(byte) => Err(Malformed::Character { byte, place: "after top-level value" }),
    }
}

/// The first value and what follows it.
pub(super) fn split_first(text: &[u8]) -> Result<(Value<'_>, &[u8]), Malformed> {
    let mut scan = Scan { text, at: 0 };
    scan.skip_space();
    let start = scan.at;
    if start == text.len() {
        return Err(Malformed::Empty);
    }
    scan.value()?;
    Ok((Value::checked(&text[start..scan.at]), &text[scan.at..]))
}

#[derive(Clone, Copy)]
enum Open {
    Array,
    Object,
}

struct Scan<'a> {
    text: &'a [u8],
    at: usize,
}

impl Scan<'_> {
    /// Passes a whole value, whatever lies in it.
    fn value(&mut self) -> Result<(), Malformed> {
        let mut open = Vec::new();
        loop {
            if let Some(opened) = self.scalar_or_open(open.len())? {
                open.push(opened);
                continue;
            }
            loop {
                let Some(innermost) = open.last() else { return Ok(()) };
                if self.goes_on(*innermost)? {
                    break;
                }
                open.pop();
            }
        }
    }

    /// Passes a value that has none in it, or steps into one that has.
    fn scalar_or_open(&mut self, depth: usize) -> Result<Option<Open>, Malformed> {
        self.skip_space();
        match self.peek()? {
            byte @ (b'{' | b'[') if depth == DEEPEST => {
                Err(Malformed::Character { byte, place: "exceeded max depth" })
            }
            b'{' => self.open(Open::Object, b'}'),
            b'[' => self.open(Open::Array, b']'),
            b'"' => self.string().map(|()| None),
            b't' => self.literal("true").map(|()| None),
            b'f' => self.literal("false").map(|()| None),
            b'n' => self.literal("null").map(|()| None),
            b'-' | b'0'..=b'9' => self.number().map(|()| None),
            _ => self.unexpected(BEFORE_VALUE),
        }
    }

    fn open(&mut self, opened: Open, close: u8) -> Result<Option<Open>, Malformed> {
        self.at += 1;
        self.skip_space();
        if self.peek()? == close {
            self.at += 1;
            return Ok(None);
        }
        match opened {
            Open::Array => {}
            Open::Object => self.key()?,
        }
        Ok(Some(opened))
    }

    /// Behind a value within another: passes the comma before the next one, or the end.
    fn goes_on(&mut self, within: Open) -> Result<bool, Malformed> {
        self.skip_space();
        match (within, self.peek()?) {
            (Open::Array, b',') => self.at += 1,
            (Open::Object, b',') => {
                self.at += 1;
                self.skip_space();
                self.key()?;
            }
            (Open::Array, b']') | (Open::Object, b'}') => {
                self.at += 1;
                return Ok(false);
            }
            (Open::Array, _) => return self.unexpected("after array element"),
            (Open::Object, _) => return self.unexpected("after object key:value pair"),
        }
        Ok(true)
    }

    /// A key and its colon.
    fn key(&mut self) -> Result<(), Malformed> {
        if self.peek()? != b'"' {
            return self.unexpected(BEFORE_KEY);
        }
        self.string()?;
        self.skip_space();
        match self.peek()? {
            b':' => self.at += 1,
            _ => return self.unexpected("after object key"),
        }
        Ok(())
    }

    fn string(&mut self) -> Result<(), Malformed> {
        self.at += 1;
        loop {
            match self.peek()? {
                b'"' => break,
                b'\\' => self.escape()?,
                0..0x20 => return self.unexpected("in string literal"),
                _ => self.at += 1,
            }
        }
        self.at += 1;
        Ok(())
    }

    fn escape(&mut self) -> Result<(), Malformed> {
        self.at += 1;
        match self.peek()? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 1,
            b'u' => {
                self.at += 1;
                for _ in 0..4 {
                    match self.peek()?.is_ascii_hexdigit() {
                        true => self.at += 1,
                        false => return self.unexpected("in \\u hexadecimal character escape"),
                    }
                }
            }
            _ => return self.unexpected("in string escape code"),
        }
        Ok(())
    }

    fn literal(&mut self, word: &'static str) -> Result<(), Malformed> {
        for expected in word.bytes() {
            match self.peek()? == expected {
                true => self.at += 1,
                false => return self.unexpected("in a literal true, false or null"),
            }
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), Malformed> {
        self.pass(|byte| byte == b'-');
        match self.peek()? {
            b'0' => self.at += 1,
            _ => self.digits("in numeric literal")?,
        }
        if self.pass(|byte| byte == b'.') {
            self.digits("after decimal point in numeric literal")?;
        }
        if self.pass(|byte| matches!(byte, b'e' | b'E')) {
            self.pass(|byte| matches!(byte, b'+' | b'-'));
            self.digits("in exponent of numeric literal")?;
        }
        Ok(())
    }

    fn digits(&mut self, place: &'static str) -> Result<(), Malformed> {
        if !self.peek()?.is_ascii_digit() {
            return self.unexpected(place);
        }
        while self.pass(|byte| byte.is_ascii_digit()) {}
        Ok(())
    }

    fn skip_space(&mut self) {
        while self.pass(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')) {}
    }

    fn pass(&mut self, wanted: impl Fn(u8) -> bool) -> bool {
        let passed = self.text.get(self.at).is_some_and(|byte| wanted(*byte));
        self.at += usize::from(passed);
        passed
    }

    fn peek(&self) -> Result<u8, Malformed> {
        self.text.get(self.at).copied().ok_or(Malformed::Cut)
    }

    fn unexpected<T>(&self, place: &'static str) -> Result<T, Malformed> {
        let byte = self.peek()?;
        Err(Malformed::Character { byte, place })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, want: &str) {
        let found = first_value(text.as_bytes()).map(|value| value.bytes().to_vec());
        match found {
            Ok(value) => assert_eq!(String::from_utf8(value).unwrap(), want, "{text}"),
            Err(error) => assert_eq!(error.to_string(), want, "{text}"),
        }
    }

    #[test]
    fn a_value_ends_where_it_ends_and_nothing_behind_it_counts() {
        for value in ["{}", "[]", "0", "-1.5e+3", "\"a\\\"b\"", "true", "null", "[1, {\"a\":[]}]"] {
            check(value, value);
            check(&format!(" \n\t{value} xyz"), value);
            check(&format!("{value}{{"), value);
        }
        check("01", "0");
        check("{}}", "{}");
    }

    #[test]
    fn what_is_wrong_is_said_as_go_says_it() {
        check("", "EOF");
        check(" \n\t ", "EOF");
        check("{\"command\":\"tr", "unexpected EOF");
        check("{\"command\":\"true\"", "unexpected EOF");
        check("tru", "unexpected EOF");
        check("{invalid", "invalid character 'i' looking for beginning of object key string");
        check("{\"a\":}", "invalid character '}' looking for beginning of value");
        check("{\"a\":1 /*c*/}", "invalid character '/' after object key:value pair");
        check("{\"a\" 1}", "invalid character '1' after object key");
        check("{\"a\":1,}", "invalid character '}' looking for beginning of object key string");
        check("[1 2]", "invalid character '2' after array element");
        check("\"a\nb\"", "invalid character '\\n' in string literal");
        check("\"\\x\"", "invalid character 'x' in string escape code");
        check("\"\\u12\"", "invalid character '\"' in \\u hexadecimal character escape");
        check("'a'", "invalid character '\\'' looking for beginning of value");
        check("\u{feff}{}", "invalid character 'ï' looking for beginning of value");
        check("-x", "invalid character 'x' in numeric literal");
        check("[01]", "invalid character '1' after array element");
        check("1.x", "invalid character 'x' after decimal point in numeric literal");
        check("1e+x", "invalid character 'x' in exponent of numeric literal");
    }

    #[test]
    fn ten_thousand_levels_are_taken_and_one_more_is_not() {
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        check(&nested(10_000), &nested(10_000));
        check(&nested(10_001), "invalid character '[' exceeded max depth");
        let object = |levels: usize| format!("{{\"x\":{}}}", nested(levels));
        check(&object(9_999), &object(9_999));
        check(&object(10_000), "invalid character '[' exceeded max depth");
    }

    #[test]
    fn an_only_value_has_nothing_behind_it() {
        assert_eq!(only_value(b" [1] ").unwrap().bytes(), b"[1]");
        let error = only_value(b"[1] x").unwrap_err();
        assert_eq!(error.to_string(), "invalid character 'x' after top-level value");
        assert_eq!(only_value(b" ").unwrap_err(), Malformed::Empty);
    }
}
