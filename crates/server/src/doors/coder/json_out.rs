//! JSON as Go's encoder writes it: compact, members in the order they are given, `<`, `>` and `&`
//! escaped, a newline behind.

use std::borrow::Cow;

/// An object under construction.
#[derive(Debug)]
pub(super) struct Object(Vec<u8>);

impl Object {
    pub(super) fn new() -> Self {
        Self(vec![b'{'])
    }

    /// Bytes that are no characters are replaced, one by one.
    pub(super) fn text(mut self, name: &str, text: impl AsRef<[u8]>) -> Self {
        self.name(name);
        push_text(&mut self.0, text.as_ref());
        self
    }

    pub(super) fn bool(self, name: &str, value: bool) -> Self {
        self.plain(name, if value { "true" } else { "false" })
    }

    pub(super) fn number(self, name: &str, value: i64) -> Self {
        self.plain(name, &value.to_string())
    }

    pub(super) fn object(mut self, name: &str, object: Self) -> Self {
        self.name(name);
        self.0.extend(object.closed());
        self
    }

    pub(super) fn objects(mut self, name: &str, objects: impl Iterator<Item = Self>) -> Self {
        self.name(name);
        self.0.push(b'[');
        for (index, object) in objects.enumerate() {
            if index > 0 {
                self.0.push(b',');
            }
            self.0.extend(object.closed());
        }
        self.0.push(b']');
        self
    }

    /// The text of an answer.
    pub(super) fn finish(self) -> Vec<u8> {
        let mut text = self.closed();
        text.push(b'\n');
        text
    }

    fn plain(mut self, name: &str, value: &str) -> Self {
        self.name(name);
        self.0.extend(value.as_bytes());
        self
    }

    fn name(&mut self, name: &str) {
        if self.0.len() > 1 {
            self.0.push(b',');
        }
        push_text(&mut self.0, name.as_bytes());
        self.0.push(b':');
    }

    fn closed(mut self) -> Vec<u8> {
        self.0.push(b'}');
        self.0
    }
}

fn push_text(json: &mut Vec<u8>, text: &[u8]) {
    json.reserve(text.len() + 2);
    json.push(b'"');
    match str::from_utf8(text) {
        Ok(text) => push_escaped(json, text),
        // Piece by piece, which takes several times as long.
        Err(_) => text.utf8_chunks().for_each(|chunk| {
            push_escaped(json, chunk.valid());
            chunk.invalid().iter().for_each(|_| json.extend(b"\\ufffd"));
        }),
    }
    json.push(b'"');
}

fn push_escaped(json: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    let mut plain = 0;
    // What needs no escape is copied in one piece.
    for (at, byte) in bytes.iter().enumerate().filter(|(_, byte)| ESCAPED[usize::from(**byte)]) {
        // U+2028 and U+2029 are the only ones of more than a byte.
        let (escape, len): (Cow<'_, str>, usize) = match (byte, bytes.get(at + 1..at + 3)) {
            (0xe2, Some([0x80, 0xa8])) => ("\\u2028".into(), 3),
            (0xe2, Some([0x80, 0xa9])) => ("\\u2029".into(), 3),
            (0xe2, _) => continue,
            _ => (escape(*byte), 1),
        };
        json.extend(&bytes[plain..at]);
        json.extend(escape.as_bytes());
        plain = at + len;
    }
    json.extend(&bytes[plain..]);
}

/// The bytes that are not simply copied.
const ESCAPED: [bool; 256] = {
    let mut escaped = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        escaped[byte] = true;
        byte += 1;
    }
    let others = [b'"', b'\\', b'<', b'>', b'&', 0xe2];
    let mut index = 0;
    while index < others.len() {
        escaped[others[index] as usize] = true;
        index += 1;
    }
    escaped
};

fn escape(byte: u8) -> Cow<'static, str> {
    match byte {
        b'"' => "\\\"".into(),
        b'\\' => "\\\\".into(),
        0x08 => "\\b".into(),
        0x0c => "\\f".into(),
        b'\n' => "\\n".into(),
        b'\r' => "\\r".into(),
        b'\t' => "\\t".into(),
        other => format!("\\u{other:04x}").into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &[u8], want: &str) {
        let mut json = Vec::new();
        push_text(&mut json, text);
        assert_eq!(String::from_utf8(json).unwrap(), format!("\"{want}\""));
    }

    #[test]
    fn members_keep_their_order() {
        let object = Object::new()
            .text("z", "a")
            .bool("b", true)
            .number("n", -1)
            .object("o", Object::new())
            .objects("l", [Object::new().bool("x", false), Object::new()].into_iter());
        let want = "{\"z\":\"a\",\"b\":true,\"n\":-1,\"o\":{},\"l\":[{\"x\":false},{}]}\n";
        assert_eq!(String::from_utf8(object.finish()).unwrap(), want);
    }

    #[test]
    fn escapes_are_those_of_go() {
        check(b"\"\\/", "\\\"\\\\/");
        check(b"\x08\x0c\n\r\t\0\x1b\x1f", "\\b\\f\\n\\r\\t\\u0000\\u001b\\u001f");
        check(b"<a>&\x7f", "\\u003ca\\u003e\\u0026\x7f");
        check(
            "\u{2028}\u{2029}\u{2027}\u{20ac}\u{85}\u{e9}\u{fffd}".as_bytes(),
            "\\u2028\\u2029\u{2027}\u{20ac}\u{85}\u{e9}\u{fffd}",
        );
        check(b"", "");
    }

    #[test]
    fn each_byte_that_is_no_character_is_one_replacement() {
        check(b"a\xffb", "a\\ufffdb");
        check(b"\xc0\x80", "\\ufffd\\ufffd");
        check(b"\xed\xa0\x80", "\\ufffd\\ufffd\\ufffd");
        check(b"\xf0\x9f\x98", "\\ufffd\\ufffd\\ufffd");
        check(b"\xe2\x80", "\\ufffd\\ufffd");
    }
}
