//! A journal is a file that a crash, a disk or a person may have damaged.

use std::mem::discriminant;

use lastbyte_testkit::{Corpus, fuzz};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use super::fingerprint::HashKey;
use super::frames::{frame, goes_on, header, read_header, split};
use super::record::Record;
use super::replay::Replayed;
use super::round_trip::record;

const KEY: HashKey = HashKey([7; 16]);

/// A record that is read says the same when it is written again, and so does all that a journal says. The
/// inputs are payloads, each behind its length in two bytes: checksums would reject every change of a frame.
#[test]
fn no_record_does_harm() {
    let corpus = Corpus { name: "journal", made: recorded(), ..Corpus::default() };
    fuzz(corpus, |input| {
        let payloads = payloads(input);
        let records: Vec<Record> = payloads.iter().filter_map(|one| Record::decode(one)).collect();
        for record in &records {
            assert_eq!(Record::decode(&record.encode()).as_ref(), Some(record));
        }
        let replayed = Replayed::of(payloads.iter().copied());
        assert_eq!(replayed.unknown, payloads.len() - records.len());
        let fewest: Vec<Record> = replayed.records().collect();
        let written: Vec<Vec<u8>> = fewest.iter().map(Record::encode).collect();
        let again = Replayed::of(written.iter().map(Vec::as_slice));
        assert_eq!((again.records().collect::<Vec<_>>(), again.unknown), (fewest, 0));
        let said = records.iter().map(|record| (discriminant(record), record.encode().len() / 16));
        said.collect::<Vec<_>>()
    });
}

/// Bytes that are no frame end the journal, and everything before them is given.
#[test]
fn no_frame_does_harm() {
    let whole = [header(KEY), frame(KEY, b"payload"), frame(KEY, b"")].concat();
    let corpus = Corpus { name: "frames", made: vec![header(KEY), whole], words: &["lastbyte"] };
    fuzz(corpus, |input| {
        let key = read_header(input).map(|key| key.0).map_err(|error| error.to_string());
        let frames = input.get(header(KEY).len()..).unwrap_or_default();
        let (payloads, good) = split(KEY, frames);
        assert_eq!(
            payloads.iter().map(|one| frame(KEY, one)).collect::<Vec<_>>().concat(),
            frames[..good]
        );
        let goes_on = frames.len() < 1000 && goes_on(KEY, &frames[good..]);
        (key, payloads.len(), goes_on)
    });
}

/// Records of every kind, alone and several together.
fn recorded() -> Vec<Vec<u8>> {
    let mut runner = TestRunner::deterministic();
    let mut payload = || record().new_tree(&mut runner).expect("a record").current().encode();
    let one: Vec<Vec<u8>> = (0..60).map(|_| with_length(&payload())).collect();
    one.iter().cloned().chain(one.chunks(6).map(<[_]>::concat)).collect()
}

fn with_length(payload: &[u8]) -> Vec<u8> {
    [&(payload.len() as u16).to_le_bytes(), payload].concat()
}

fn payloads(mut input: &[u8]) -> Vec<&[u8]> {
    let mut payloads = Vec::new();
    while let Some((length, rest)) = input.split_first_chunk::<2>() {
        let length = usize::from(u16::from_le_bytes(*length)).min(rest.len());
        let (payload, rest) = rest.split_at(length);
        payloads.push(payload);
        input = rest;
    }
    payloads
}
