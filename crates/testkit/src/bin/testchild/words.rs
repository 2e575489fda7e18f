//! The arguments of one action, and the escapes in its text.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::str::FromStr;

/// The remaining arguments of an action.
#[derive(Clone, Copy)]
pub(crate) struct Words<'a>(&'a [OsString]);

impl<'a> Words<'a> {
    /// Splits an action into its name and arguments.
    pub(crate) fn from_action(action: &'a [OsString]) -> io::Result<(&'a str, Self)> {
        let Some((name, arguments)) = action.split_first() else {
            return Err(io::Error::other("missing action before or after `then`"));
        };
        let name = name.to_str().ok_or_else(|| io::Error::other("no such action"))?;
        Ok((name, Self(arguments)))
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// Fails if any words are left.
    pub(crate) fn done(self) -> io::Result<()> {
        match self.0.first() {
            None => Ok(()),
            Some(word) => Err(io::Error::other(format!("unexpected argument {}", word.display()))),
        }
    }

    pub(crate) fn word(&mut self, what: &str) -> io::Result<&'a OsStr> {
        let Some((word, rest)) = self.0.split_first() else {
            return Err(io::Error::other(format!("missing {what}")));
        };
        self.0 = rest;
        Ok(word)
    }

    /// The next word with its escapes replaced.
    pub(crate) fn text(&mut self) -> io::Result<Vec<u8>> {
        unescape(self.word("TEXT")?.as_bytes())
    }

    pub(crate) fn number<Number: FromStr>(&mut self, what: &str) -> io::Result<Number> {
        let word = self.word(what)?;
        word.to_str().and_then(|word| word.parse().ok()).ok_or_else(|| {
            io::Error::other(format!("{what} must be a number, not {}", word.display()))
        })
    }

    /// The only argument, as a number.
    pub(crate) fn only_number<Number: FromStr>(mut self, what: &str) -> io::Result<Number> {
        let number = self.number(what)?;
        self.done()?;
        Ok(number)
    }

    /// The nested actions, up to the closing `end`.
    pub(crate) fn actions(self) -> io::Result<&'a [OsString]> {
        match self.0.split_last() {
            Some((end, actions)) if end == "end" => Ok(actions),
            _ => Err(io::Error::other("missing `end`")),
        }
    }
}

/// Replaces the escapes `\n`, `\r`, `\t`, `\0`, `\\` and `\xNN`.
fn unescape(text: &[u8]) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.iter().copied();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        bytes.push(match rest.next() {
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'0') => 0,
            Some(b'\\') => b'\\',
            Some(b'x') => hex_digit(rest.next())? * 16 + hex_digit(rest.next())?,
            _ => {
                return Err(io::Error::other(
                    "an escape must be one of \\n \\r \\t \\0 \\\\ \\xNN",
                ));
            }
        });
    }
    Ok(bytes)
}

fn hex_digit(digit: Option<u8>) -> io::Result<u8> {
    let value = digit.and_then(|digit| char::from(digit).to_digit(16));
    value
        .and_then(|value| u8::try_from(value).ok())
        .ok_or_else(|| io::Error::other("\\x must be followed by two hexadecimal digits"))
}

#[cfg(test)]
mod tests {
    use super::unescape;

    #[test]
    fn escapes_are_replaced_and_other_bytes_kept() {
        assert_eq!(unescape(br"a\n\r\t\0\\\xfF\x00b").unwrap(), b"a\n\r\t\0\\\xff\0b");
        assert_eq!(unescape(b"\xff\xfe").unwrap(), b"\xff\xfe");
    }

    #[test]
    fn a_broken_escape_is_rejected() {
        for broken in [&br"\"[..], br"\q", br"\x", br"\x1", br"\xg0"] {
            assert!(unescape(broken).is_err());
        }
    }
}
