//! The decoded text does not depend on how the input is split into chunks.

use lastbyte_output::decode::{Decoder, unfinished};
use proptest::prelude::*;

/// Bytes that are nearly text: whole characters, partial characters and stray bytes.
fn nearly_text() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        any::<char>().prop_map(|character| character.to_string().into_bytes()),
        any::<u8>().prop_map(|byte| vec![byte]),
        Just(b"\xF0\x9F\x98".to_vec()),
        Just(b"\xED\xA0".to_vec()),
    ];
    prop::collection::vec(part, 0..40).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn the_chunks_do_not_change_the_text(
        bytes in nearly_text(),
        sizes in prop::collection::vec(1..6_usize, 1..20),
    ) {
        let (mut decoder, mut text) = (Decoder::default(), String::new());
        let mut rest = bytes.as_slice();
        for size in sizes.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (chunk, after) = rest.split_at(rest.len().min(*size));
            text.push_str(&String::from_utf8_lossy(&decoder.complete(chunk)));
            rest = after;
        }
        text.push_str(&String::from_utf8_lossy(&decoder.held));
        prop_assert_eq!(text, String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn bytes_before_an_unfinished_character_decode_alone(bytes in nearly_text(), more in nearly_text()) {
        let (whole, held) = bytes.split_at(bytes.len() - unfinished(&bytes));
        let apart = String::from_utf8_lossy(whole).into_owned()
            + &String::from_utf8_lossy(&[held, more.as_slice()].concat());
        let together = [bytes.as_slice(), &more].concat();
        prop_assert_eq!(apart, String::from_utf8_lossy(&together));
    }
}
