//! The index as bytes: blocks that can be read without those before them.

use std::fs::File;
use std::io;
use std::iter;
use std::os::unix::fs::FileExt;

use lastbyte_sys::file::next_data;

use crate::log::quota::BLOCK;
use crate::log::{Stamp, Stream};

/// An absolute record: 16 bytes.
const HEADER: usize = 16;
/// The latest time that an absolute record has room for, beside its stream.
const LATEST: u64 = u64::MAX / 2;
/// Two varints of at most ten bytes.
pub(super) const LONGEST_RECORD: usize = 20;

/// The record that a block begins with.
pub(super) fn absolute(stamp: Stamp) -> Vec<u8> {
    let second = stamp.at_ms * 2 + encode_stream(stamp.stream);
    [stamp.offset.to_le_bytes(), second.to_le_bytes()].concat()
}

/// The record of `stamp`, after that of `last`.
pub(super) fn after(last: Stamp, stamp: Stamp) -> Vec<u8> {
    let mut record = Vec::with_capacity(LONGEST_RECORD);
    // One is added because a zero is padding.
    encode_varint((stamp.offset - last.offset) * 2 + encode_stream(stamp.stream) + 1, &mut record);
    encode_varint(stamp.at_ms - last.at_ms, &mut record);
    record
}

/// The first block in `from..end` that was not given back, and its first stamp.
pub(super) fn first_from(file: &File, from: u64, end: u64) -> io::Result<Option<(u64, Stamp)>> {
    let Some(data) = next_data(file, from * BLOCK)? else { return Ok(None) };
    for block in (data / BLOCK).max(from)..end {
        if let Some(stamp) = read_header(file, block)? {
            return Ok(Some((block, stamp)));
        }
    }
    Ok(None)
}

/// The first stamp of a block; `None` for one that was given back or is not there yet.
pub(super) fn read_header(file: &File, block: u64) -> io::Result<Option<Stamp>> {
    let mut header = [0; HEADER];
    match file.read_exact_at(&mut header, block * BLOCK) {
        Ok(()) => Ok(decode_header(&header)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

/// The last whole record of a stamp that is not past this offset, and where in the file it ends.
pub(super) fn last_up_to(file: &File, offset: u64) -> io::Result<Option<(Stamp, u64)>> {
    let blocks = file.metadata()?.len().div_ceil(BLOCK);
    for block in (0..blocks).rev() {
        let bytes = read_bytes(file, block)?;
        let early = records(&bytes).take_while(|(stamp, _)| stamp.offset <= offset);
        if let Some((stamp, end)) = early.last() {
            return Ok(Some((stamp, block * BLOCK + end as u64)));
        }
    }
    Ok(None)
}

/// All stamps of a block.
pub(super) fn read(file: &File, block: u64) -> io::Result<Vec<Stamp>> {
    read_bytes(file, block).map(|bytes| decode(&bytes))
}

fn read_bytes(file: &File, block: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; BLOCK as usize];
    let mut len = 0;
    while len < bytes.len() {
        match file.read_at(&mut bytes[len..], block * BLOCK + len as u64)? {
            0 => break,
            more => len += more,
        }
    }
    bytes.truncate(len);
    Ok(bytes)
}

fn decode(bytes: &[u8]) -> Vec<Stamp> {
    let mut stamps: Vec<Stamp> = Vec::new();
    for (stamp, _) in records(bytes) {
        // Of two records for one offset the last holds.
        if stamps.last().is_some_and(|last| last.offset == stamp.offset) {
            stamps.pop();
        }
        stamps.push(stamp);
    }
    stamps
}

/// The whole records of a block, each with the place where it ends.
fn records(bytes: &[u8]) -> impl Iterator<Item = (Stamp, usize)> {
    let header = bytes.split_at_checked(HEADER);
    let first = header.and_then(|(header, rest)| Some((decode_header(header)?, rest)));
    let all = iter::successors(first, |(last, rest)| decode_after(*last, rest));
    all.map(|(stamp, rest)| (stamp, bytes.len() - rest.len()))
}

/// The stamp whose record comes after that of `last`, and the bytes behind it.
fn decode_after(last: Stamp, bytes: &[u8]) -> Option<(Stamp, &[u8])> {
    let (step, rest) = decode_varint(bytes)?;
    let (time, rest) = decode_varint(rest)?;
    let step = step.checked_sub(1)?;
    // No log is so long that this overflows: the file is damaged, and the rest of the block is ignored.
    let (offset, at_ms) = (last.offset.checked_add(step / 2)?, last.at_ms.checked_add(time)?);
    // A block could not begin with a later time.
    if at_ms > LATEST {
        return None;
    }
    Some((Stamp { offset, stream: decode_stream(step), at_ms }, rest))
}

/// `None` for a hole: a real time is never zero.
fn decode_header(header: &[u8]) -> Option<Stamp> {
    let word = |at: usize| Some(u64::from_le_bytes(header.get(at..at + 8)?.try_into().ok()?));
    let (offset, second) = (word(0)?, word(8)?);
    (second > 1).then_some(Stamp { offset, stream: decode_stream(second), at_ms: second / 2 })
}

fn encode_stream(stream: Stream) -> u64 {
    match stream {
        Stream::Out => 0,
        Stream::Err => 1,
    }
}

pub(super) fn decode_stream(word: u64) -> Stream {
    match word % 2 {
        0 => Stream::Out,
        _ => Stream::Err,
    }
}

fn encode_varint(mut value: u64, into: &mut Vec<u8>) {
    while value >= 0x80 {
        into.push(value as u8 | 0x80);
        value >>= 7;
    }
    into.push(value as u8);
}

fn decode_varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0;
    for (index, byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Some((value, &bytes[index + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_leads_past_all_numbers_ends_the_block() {
        let first = Stamp { offset: u64::MAX - 1, stream: Stream::Out, at_ms: 7 };
        let mut block = absolute(first);
        encode_varint(2 * 5 + 1, &mut block);
        encode_varint(1, &mut block);
        assert_eq!(decode(&block), [first]);
    }
    #[test]
    fn a_time_that_no_block_could_begin_with_ends_the_block() {
        let first = Stamp { offset: 5, stream: Stream::Out, at_ms: 7 };
        for (at_ms, is_read) in [(LATEST, true), (LATEST + 1, false)] {
            let mut block = absolute(first);
            encode_varint(2 + 1, &mut block);
            encode_varint(at_ms - first.at_ms, &mut block);
            let read = decode(&block);
            assert_eq!((read[0], read.len()), (first, 1 + usize::from(is_read)));
            read.into_iter().for_each(|stamp| drop(absolute(stamp)));
        }
    }
}
