//! The index as bytes: blocks that can be read without those before them.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use lastbyte_sys::file::next_data;

use crate::log::quota::BLOCK;
use crate::log::{Stamp, Stream};

/// An absolute record: 16 bytes.
const HEADER: usize = 16;
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

/// All stamps of a block.
pub(super) fn read(file: &File, block: u64) -> io::Result<Vec<Stamp>> {
    let mut bytes = [0; BLOCK as usize];
    let mut len = 0;
    while len < bytes.len() {
        match file.read_at(&mut bytes[len..], block * BLOCK + len as u64)? {
            0 => break,
            more => len += more,
        }
    }
    Ok(decode(&bytes[..len]))
}

fn decode(bytes: &[u8]) -> Vec<Stamp> {
    let mut stamps = Vec::new();
    let Some((header, mut rest)) = bytes.split_at_checked(HEADER) else { return stamps };
    let Some(mut stamp) = decode_header(header) else { return stamps };
    loop {
        // Of two records for one offset the last holds.
        if stamps.last().is_some_and(|last: &Stamp| last.offset == stamp.offset) {
            stamps.pop();
        }
        stamps.push(stamp);
        let Some((step, tail)) = decode_varint(rest) else { return stamps };
        let Some((time, tail)) = decode_varint(tail) else { return stamps };
        let Some(step) = step.checked_sub(1) else { return stamps };
        let stream = decode_stream(step);
        let (offset, at_ms) = (stamp.offset.checked_add(step / 2), stamp.at_ms.checked_add(time));
        // No log is that long: the file is damaged, and the rest of the block is ignored.
        let (Some(offset), Some(at_ms)) = (offset, at_ms) else { return stamps };
        stamp = Stamp { offset, stream, at_ms };
        rest = tail;
    }
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
}
