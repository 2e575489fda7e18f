//! An index is a file that a crash, a disk or a person may have damaged.

use lastbyte_testkit::{Corpus, fuzz_inputs};

use super::*;
use crate::log::Stream;

/// Enough to begin another block, if the last one is almost full.
const APPENDED: u64 = 4;

/// Lookups find only what is asked for. An index that is resumed takes more stamps, and has them afterwards.
#[test]
fn no_index_does_harm() {
    let file = tempfile::tempfile().expect("file");
    fuzz_inputs(1_000, Corpus { name: "index", made: made(), ..Corpus::default() }, |bytes| {
        file.set_len(0).expect("shorter");
        file.write_all_at(bytes, 0).expect("written");
        let found = within(&file, &(5..1 << 40), 100).expect("readable");
        assert!(found.until > 5 && found.stamps.iter().all(|stamp| stamp.offset < 1 << 40));
        let since = made_since(&file, 1000).expect("readable");

        let (copy, log_len) = (file.try_clone().expect("a descriptor"), u64::MAX / 4);
        let mut index = IndexWriter::resume(copy, log_len).expect("readable");
        let last = index.last().unwrap_or(Stamp { offset: 0, stream: Stream::Out, at_ms: 1 });
        assert!(last.offset <= log_len, "{last:?}");
        for number in 1..=APPENDED {
            let offset = last.offset + number * (1 << 50);
            let stamp = Stamp { offset, stream: Stream::Err, at_ms: last.at_ms };
            index.append(stamp).expect("room");
            assert_eq!(index.last(), Some(stamp));
            let (newest, _) = last_up_to(&file, u64::MAX).expect("readable").expect("one");
            assert_eq!(newest, stamp);
        }
        (last.at_ms.leading_zeros(), since.is_some(), found.stamps.len().checked_ilog2())
    });
}

/// Short ones, one that ends where a block is almost full, and some of several blocks.
fn made() -> Vec<Vec<u8>> {
    let counts = [0, 3, 1016, 1500, 4000];
    counts
        .map(|count| {
            let file = tempfile::tempfile().expect("file");
            let mut index = IndexWriter::new(file.try_clone().expect("a descriptor"));
            for number in 0..count {
                let stream = block::decode_stream(number);
                let stamp = Stamp { offset: number * 1000, stream, at_ms: 900 + number };
                index.append(stamp).expect("room");
            }
            let mut bytes = vec![0; index.len as usize];
            file.read_exact_at(&mut bytes, 0).expect("read");
            bytes
        })
        .to_vec()
}
