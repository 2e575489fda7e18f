//! Base64 as Codex accepts it: the standard alphabet, padded, canonical. What is wrong with a text
//! is said in the words of Codex's own decoder.

use base64_simd::STANDARD;

const PAD: u8 = b'=';

/// The bytes, or what is wrong with the text.
pub(crate) fn decode(text: &str) -> Result<Vec<u8>, String> {
    STANDARD.decode_to_vec(text).map_err(|_| what_is_wrong(text.as_bytes()))
}

/// The decoder only says that something is wrong.
fn what_is_wrong(text: &[u8]) -> String {
    let is_symbol = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    let symbols = text.iter().position(|byte| !is_symbol(*byte)).unwrap_or(text.len());
    // Padding is valid only in the last group of four, after two symbols at least.
    let padding_from = text.len().saturating_sub(1) / 4 * 4 + 2;
    let is_padding = symbols >= padding_from && text[symbols..].iter().all(|byte| *byte == PAD);
    let bad_symbol = match text.last() {
        // Codex's decoder looks at this one first.
        Some(&last) if text.len() % 4 == 1 && last != PAD && !is_symbol(last) => {
            Some(text.len() - 1)
        }
        _ => (symbols < text.len() && !is_padding).then_some(symbols),
    };
    if let Some(at) = bad_symbol {
        format!("Invalid symbol {}, offset {at}.", text[at])
    } else if symbols < padding_from {
        format!("Invalid input length: {symbols}")
    } else if !text.len().is_multiple_of(4) {
        "Invalid padding".into()
    } else {
        // Its last bits would be lost.
        format!("Invalid last symbol {}, offset {}.", text[symbols - 1], symbols - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_right_is_decoded() {
        assert_eq!(decode("").unwrap(), b"");
        assert_eq!(decode("aGk=").unwrap(), b"hi");
        assert_eq!(decode("aGkh").unwrap(), b"hi!");
        let bytes = (0..=255).collect::<Vec<u8>>();
        assert_eq!(decode(&STANDARD.encode_to_string(&bytes)).unwrap(), bytes);
    }

    #[test]
    fn what_is_wrong_is_named_as_codex_names_it() {
        let cases = [
            ("!!!", "Invalid symbol 33, offset 0."),
            ("aGk", "Invalid padding"),
            ("aGl=", "Invalid last symbol 108, offset 2."),
            ("aG==aGkh", "Invalid symbol 61, offset 2."),
            ("aGkh\n", "Invalid symbol 10, offset 4."),
            ("!Gkh\n", "Invalid symbol 10, offset 4."),
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
            assert_eq!(decode(text).expect_err(text), want, "{text:?}");
        }
    }
}
