//! Head, omitted range and tail make up the whole log.

use lastbyte_output::views::{Source, head_tail::native};
use proptest::prelude::*;

use crate::chopped::{Chopped, output, whole, with_holes};

fn check_sum(source: &Chopped, max_bytes: usize) {
    let view = native(source, 0, max_bytes).unwrap();
    let (head, tail) = (view.head.len() as u64, view.tail.len() as u64);
    assert!(view.head.len() + view.tail.len() <= max_bytes);
    assert!(source.bytes.starts_with(&view.head) && source.bytes.ends_with(&view.tail));
    match view.omitted {
        Some(omitted) => assert_eq!(omitted, head..source.end() - tail),
        None => assert_eq!((head, tail), (source.end(), 0)),
    }
    if let [gone] = &source.dropped[..]
        && source.bytes.len() - (gone.end - gone.start) as usize <= max_bytes
    {
        assert_eq!(head..source.end() - tail, *gone);
    }
    let fits = source.bytes.len() <= max_bytes && source.dropped.is_empty();
    assert_eq!(fits, head == source.end());
}

proptest! {
    #[test]
    fn head_omitted_range_and_tail_make_up_the_log(
        source in with_holes(output()),
        max_bytes in 0..400_usize,
    ) {
        check_sum(&source, max_bytes);
    }

    #[test]
    fn a_large_log_is_shortened_like_a_small_one(
        source in with_holes((1..5000_usize).prop_map(|times| b"0123456789abcdef0123456789\n".repeat(times))),
        max_bytes in 0..200_000_usize,
    ) {
        check_sum(&source, max_bytes);
    }

    #[test]
    fn text_stays_text(
        source in whole(output().prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned().into_bytes())),
        max_bytes in 0..400_usize,
    ) {
        let view = native(&source, 0, max_bytes).unwrap();
        prop_assert!(str::from_utf8(&view.head).is_ok());
        prop_assert!(str::from_utf8(&view.tail).is_ok());
    }
}
