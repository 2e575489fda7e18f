//! The decoded text does not depend on where the input is split, if unfinished characters are held back.

use lastbyte_output::decode::unfinished;
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
    fn bytes_before_an_unfinished_character_decode_alone(bytes in nearly_text(), more in nearly_text()) {
        let (whole, held) = bytes.split_at(bytes.len() - unfinished(&bytes));
        let apart = String::from_utf8_lossy(whole).into_owned()
            + &String::from_utf8_lossy(&[held, more.as_slice()].concat());
        let together = [bytes.as_slice(), &more].concat();
        prop_assert_eq!(apart, String::from_utf8_lossy(&together));
    }
}
