//! Base64 as Codex takes it: the standard alphabet, padded, canonical. What is wrong with a text is
//! said in the words that Codex has from its own decoder.

use base64_simd::STANDARD;

const PAD: u8 = b'=';

/// The bytes, or what is wrong with the text.
pub(super) fn decode(text: &str) -> Result<Vec<u8>, String> {
    // The quick decoder says yes or no; only for a no somebody has to look.
    STANDARD.decode_to_vec(text).map_err(|_| complaint(text.as_bytes()))
}

/// Appends the text of these bytes.
pub(super) fn encode_to(bytes: &[u8], text: &mut String) {
    STANDARD.encode_append(bytes, text);
}

/// Every group of four but the last must be whole; padding is looked at in the last one alone.
fn complaint(text: &[u8]) -> String {
    if let Some(&last) = text.last()
        && text.len() % 4 == 1
        && last != PAD
        && !is_symbol(last)
    {
        return bad_symbol(text, text.len() - 1);
    }
    let last_group = text.len().saturating_sub(1) / 4 * 4;
    match text[..last_group].iter().position(|byte| !is_symbol(*byte)) {
        Some(at) => bad_symbol(text, at),
        None => complaint_in_last_group(text, last_group),
    }
}

fn complaint_in_last_group(text: &[u8], begin: usize) -> String {
    let group = &text[begin..];
    let symbols = group.iter().position(|byte| *byte == PAD).unwrap_or(group.len());
    if let Some(at) = group[..symbols].iter().position(|byte| !is_symbol(*byte)) {
        return bad_symbol(text, begin + at);
    }
    let padded_too_soon = symbols < group.len() && symbols < 2;
    if padded_too_soon || group[symbols..].iter().any(|byte| *byte != PAD) {
        return bad_symbol(text, begin + symbols);
    }
    if symbols < 2 {
        return format!("Invalid input length: {}", begin + symbols);
    }
    if group.len() != 4 {
        return "Invalid padding".into();
    }
    let at = begin + symbols - 1;
    format!("Invalid last symbol {}, offset {at}.", text[at])
}

fn bad_symbol(text: &[u8], at: usize) -> String {
    format!("Invalid symbol {}, offset {at}.", text[at])
}

fn is_symbol(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaint(text: &str) -> String {
        decode(text).expect_err(text)
    }

    #[test]
    fn what_is_right_is_decoded() {
        assert_eq!(decode("").unwrap(), b"");
        assert_eq!(decode("aGk=").unwrap(), b"hi");
        assert_eq!(decode("aGkh").unwrap(), b"hi!");
        let (bytes, mut text) = ((0..=255).collect::<Vec<u8>>(), String::new());
        encode_to(&bytes, &mut text);
        assert_eq!(decode(&text).unwrap(), bytes);
    }

    #[test]
    fn what_is_wrong_is_named_as_codex_names_it() {
        let cases = [
            ("!!!", "Invalid symbol 33, offset 0."),
            ("aGk", "Invalid padding"),
            ("aGl=", "Invalid last symbol 108, offset 2."),
            ("aG==aGkh", "Invalid symbol 61, offset 2."),
            ("aGkh\n", "Invalid symbol 10, offset 4."),
            ("aG k", "Invalid symbol 32, offset 2."),
            ("_-8=", "Invalid symbol 95, offset 0."),
            ("a===", "Invalid symbol 61, offset 1."),
            ("=", "Invalid symbol 61, offset 0."),
            ("aG=k", "Invalid symbol 61, offset 2."),
            ("aGkha", "Invalid input length: 5"),
            ("aG=", "Invalid padding"),
            ("\u{e9}", "Invalid symbol 195, offset 0."),
        ];
        for (text, want) in cases {
            assert_eq!(complaint(text), want, "{text:?}");
        }
    }
}
