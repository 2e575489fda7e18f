//! Text in quotes as Go writes it (`%q`): what can be printed as it is, everything else escaped.

use std::fmt::Write;

/// Bytes in double quotes.
pub(super) fn quote(text: &[u8]) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for chunk in text.utf8_chunks() {
        chunk.valid().chars().for_each(|character| push(&mut quoted, character));
        chunk.invalid().iter().for_each(|byte| push_byte(&mut quoted, *byte));
    }
    quoted.push('"');
    quoted
}

fn push(quoted: &mut String, character: char) {
    match character {
        '\\' => quoted.push_str("\\\\"),
        '"' => quoted.push_str("\\\""),
        '\u{7}' => quoted.push_str("\\a"),
        '\u{8}' => quoted.push_str("\\b"),
        '\u{c}' => quoted.push_str("\\f"),
        '\n' => quoted.push_str("\\n"),
        '\r' => quoted.push_str("\\r"),
        '\t' => quoted.push_str("\\t"),
        '\u{b}' => quoted.push_str("\\v"),
        '\0'..' ' | '\u{7f}' => push_byte(quoted, character as u8),
        _ if printable(character) => quoted.push(character),
        _ => {
            let code = u32::from(character);
            let written = match code {
                0..0x1_0000 => write!(quoted, "\\u{code:04x}"),
                _ => write!(quoted, "\\U{code:08x}"),
            };
            written.expect("a string takes what is written to it");
        }
    }
}

fn push_byte(quoted: &mut String, byte: u8) {
    write!(quoted, "\\x{byte:02x}").expect("a string takes what is written to it");
}

/// Letters, marks, numbers, punctuation, symbols and the space: the same classes as in the
/// standard library's own escapes, which show nothing of their table but what they do. There a
/// mark is escaped when it comes first, so something is put before it.
fn printable(character: char) -> bool {
    let mut pair = [b'-'; 5];
    let end = 1 + character.encode_utf8(&mut pair[1..]).len();
    let pair = std::str::from_utf8(&pair[..end]);
    pair.is_ok_and(|pair| character == '\'' || pair.escape_debug().nth(1) == Some(character))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &[u8], want: &str) {
        assert_eq!(quote(text), format!("\"{want}\""));
    }

    #[test]
    fn quotes_controls_and_broken_bytes_are_escaped() {
        check(b"plain 'text' ~", "plain 'text' ~");
        check(b"\"\\", "\\\"\\\\");
        check(b"\x07\x08\x0c\n\r\t\x0b", "\\a\\b\\f\\n\\r\\t\\v");
        check(b"\0\x01\x1f\x7f", "\\x00\\x01\\x1f\\x7f");
        check(b"\xff\xc3\xf0\x9f\x98", "\\xff\\xc3\\xf0\\x9f\\x98");
    }

    #[test]
    fn characters_are_escaped_unless_they_can_be_printed() {
        check(
            "\u{e9} \u{4e16} \u{1f600} \u{fffd}".as_bytes(),
            "\u{e9} \u{4e16} \u{1f600} \u{fffd}",
        );
        check("e\u{301}\u{301}".as_bytes(), "e\u{301}\u{301}");
        check("\u{301}".as_bytes(), "\u{301}");
        check(
            "\u{a0}\u{ad}\u{200b}\u{2028}\u{feff}".as_bytes(),
            "\\u00a0\\u00ad\\u200b\\u2028\\ufeff",
        );
        check("\u{e000}\u{10ffff}\u{e0001}".as_bytes(), "\\ue000\\U0010ffff\\U000e0001");
        check("\u{85}\u{3000}".as_bytes(), "\\u0085\\u3000");
    }
}
