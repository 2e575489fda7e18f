//! Bytes that an argument cannot hold, written as escapes.

use std::io;

/// Resolves `\n`, `\r`, `\t`, `\0`, `\\` and `\xNN`.
pub(crate) fn unescape(text: &[u8]) -> io::Result<Vec<u8>> {
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
            _ => return Err(io::Error::other("an escape is one of \\n \\r \\t \\0 \\\\ \\xNN")),
        });
    }
    Ok(bytes)
}

fn hex_digit(digit: Option<u8>) -> io::Result<u8> {
    let value = digit.and_then(|digit| char::from(digit).to_digit(16));
    value
        .and_then(|value| u8::try_from(value).ok())
        .ok_or_else(|| io::Error::other("\\x is followed by two hexadecimal digits"))
}

#[cfg(test)]
mod tests {
    use super::unescape;

    #[test]
    fn escapes_become_bytes_and_other_bytes_stay() {
        assert_eq!(unescape(br"a\n\r\t\0\\\xfF\x00b").unwrap(), b"a\n\r\t\0\\\xff\0b");
        assert_eq!(unescape(b"\xff\xfe").unwrap(), b"\xff\xfe");
    }

    #[test]
    fn a_broken_escape_is_refused() {
        for broken in [&br"\"[..], br"\q", br"\x", br"\x1", br"\xg0"] {
            assert!(unescape(broken).is_err());
        }
    }
}
