//! Records in a file: each has its length and a checksum before it, so that a torn one is detected.

use std::hash::Hasher;

use siphasher::sip::SipHasher13;

use super::fingerprint::HashKey;

/// The length of a header.
pub(super) const HEADER: usize = MAGIC.len() + 4 + 16 + 8;
const MAGIC: &[u8] = b"lastbyte";
const VERSION: u32 = 2;

/// Why a file does not begin like a journal that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum HeaderError {
    #[error("it is damaged or not a journal")]
    Invalid,
    #[error("it has version {0}; this program reads only version {VERSION}")]
    Version(u32),
}

/// The header of a journal.
pub(super) fn header(key: HashKey) -> Vec<u8> {
    let mut bytes = [MAGIC, &VERSION.to_le_bytes(), &key.0].concat();
    bytes.extend(checksum(key, &[&bytes]).to_le_bytes());
    bytes
}

/// The key of a journal.
pub(super) fn read_header(bytes: &[u8]) -> Result<HashKey, HeaderError> {
    let header = bytes.get(..HEADER).ok_or(HeaderError::Invalid)?;
    let (head, sum) = header.split_at(HEADER - 8);
    let rest = head.strip_prefix(MAGIC).ok_or(HeaderError::Invalid)?;
    let (version, key) = rest.split_at(4);
    let version = u32::from_le_bytes(version.try_into().map_err(|_| HeaderError::Invalid)?);
    if version > VERSION {
        return Err(HeaderError::Version(version));
    }
    let key = HashKey(key.try_into().map_err(|_| HeaderError::Invalid)?);
    // Version 1 was never released.
    let intact = version == VERSION && checksum(key, &[head]).to_le_bytes() == sum;
    intact.then_some(key).ok_or(HeaderError::Invalid)
}

/// A payload with its length and checksum.
pub(super) fn frame(key: HashKey, payload: &[u8]) -> Vec<u8> {
    // A command line is a few megabytes at the most.
    let length = u32::try_from(payload.len()).expect("a record fits into 4 GiB").to_le_bytes();
    let sum = checksum(key, &[&length, payload]).to_le_bytes();
    [length.as_slice(), &sum, payload].concat()
}

/// The payloads up to the first incomplete frame, and the length of the complete ones.
pub(super) fn split(key: HashKey, bytes: &[u8]) -> (Vec<&[u8]>, usize) {
    let (mut payloads, mut rest) = (Vec::new(), bytes);
    while let Some((payload, following)) = first_payload(key, rest) {
        payloads.push(payload);
        rest = following;
    }
    (payloads, bytes.len() - rest.len())
}

/// Whether a complete frame follows an incomplete one: nothing follows a write that was cut off, so
/// the file is damaged.
pub(super) fn goes_on(key: HashKey, torn: &[u8]) -> bool {
    (1..torn.len()).any(|at| first_payload(key, &torn[at..]).is_some())
}

/// The payload of the first frame, and the bytes after the frame.
fn first_payload(key: HashKey, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (sum, rest) = rest.split_first_chunk::<8>()?;
    let count = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let (payload, rest) = rest.split_at_checked(count)?;
    let intact = checksum(key, &[length, payload]).to_le_bytes() == *sum;
    intact.then_some((payload, rest))
}

/// Uses the file's own key, unlike a CRC: a frame of another file, in disk blocks that the file system
/// gave to this one, is rejected.
fn checksum(key: HashKey, parts: &[&[u8]]) -> u64 {
    let mut hasher = SipHasher13::new_with_key(&key.0);
    parts.iter().for_each(|part| hasher.write(part));
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KEY: HashKey = HashKey([7; 16]);

    proptest! {
        /// Cut at every byte: what was whole is found, and nothing else.
        #[test]
        fn whatever_is_cut_off_the_whole_frames_before_it_stay(
            payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..6),
        ) {
            let frames: Vec<Vec<u8>> = payloads.iter().map(|one| frame(KEY, one)).collect();
            let bytes = frames.concat();
            for cut in 0..=bytes.len() {
                let (found, good) = split(KEY, &bytes[..cut]);
                let mut end = 0;
                let whole = frames.iter().take_while(|frame| { end += frame.len(); end <= cut });
                let whole = whole.count();
                prop_assert_eq!(good, frames[..whole].concat().len());
                prop_assert_eq!(found, &payloads[..whole]);
            }
        }

        #[test]
        fn a_changed_byte_ends_the_journal_there(
            payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..20), 1..6),
            at in any::<prop::sample::Index>(),
            change in 1u8..,
        ) {
            let frames: Vec<Vec<u8>> = payloads.iter().map(|one| frame(KEY, one)).collect();
            let mut bytes = frames.concat();
            let at = at.index(bytes.len());
            bytes[at] ^= change;
            let mut end = 0;
            let before = frames.iter().take_while(|frame| { end += frame.len(); end <= at }).count();
            prop_assert_eq!(split(KEY, &bytes).0.len(), before);
        }
    }

    #[test]
    fn zeros_and_frames_of_another_file_are_no_frames() {
        assert_eq!(split(KEY, &[0; 64]), (vec![], 0));
        assert_eq!(split(KEY, &frame(HashKey([8; 16]), b"other")), (vec![], 0));
    }

    #[test]
    fn a_header_reads_back_and_a_strange_one_is_told() {
        let bytes = header(KEY);
        assert_eq!((bytes.len(), read_header(&bytes)), (HEADER, Ok(KEY)));
        assert_eq!(read_header(&bytes[..HEADER - 1]), Err(HeaderError::Invalid));
        for (at, want) in [(0, HeaderError::Invalid), (13, HeaderError::Invalid)] {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1;
            assert_eq!(read_header(&bytes), Err(want));
        }
        for (version, want) in [(1, HeaderError::Invalid), (3, HeaderError::Version(3))] {
            let mut other = bytes.clone();
            other[MAGIC.len()] = version;
            assert_eq!(read_header(&other), Err(want));
        }
    }
}
