//! The index of a split log: where each run of one stream starts, and when.
//!
//! A run's record is written before its bytes, so after a crash the log's length alone says how
//! many of them arrived and to which stream they belong; of two records for one offset the last
//! holds. Blocks of 4 KiB begin with an absolute record, so that a lookup is a binary search and
//! a block can be given back without making the next ones unreadable.
//!
//! ```text
//! block:  offset u64 | time·2+stream u64 | (Δoffset·2+stream+1 varint, Δtime varint)… | zeros
//! ```

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use lastbyte_sys::file::{next_data, punch_hole};

use super::Stream;
use super::quota::BLOCK;

/// Bytes of one stream that arrived one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    pub range: Range<u64>,
    pub stream: Stream,
    /// When its first byte was stored, in milliseconds of unix time.
    pub at_ms: u64,
}

/// Where one run starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    offset: u64,
    stream: Stream,
    at_ms: u64,
}

/// The appending side.
#[derive(Debug)]
pub(super) struct RunsWriter {
    file: File,
    /// Bytes in the file so far.
    len: u64,
    last: Option<Mark>,
    /// The first block not yet looked at by [`RunsWriter::give_back`].
    first_kept: u64,
    given_back: u64,
}

const HEADER: usize = 16;
/// Two varints of at most ten bytes.
const LONGEST_RECORD: usize = 20;

impl RunsWriter {
    /// Begins an index in an empty file.
    pub(super) fn new(file: File) -> Self {
        Self { file, len: 0, last: None, first_kept: 0, given_back: 0 }
    }

    /// Whether the run that is being written is of this stream.
    pub(super) fn goes_on(&self, stream: Stream) -> bool {
        self.last.is_some_and(|last| last.stream == stream)
    }

    /// Says that the byte at `offset` and those after it are of `stream`.
    pub(super) fn begin(&mut self, offset: u64, stream: Stream, at_ms: u64) -> io::Result<()> {
        let last = self.last;
        // A clock that was set back must not make a later run look earlier.
        let at_ms = at_ms.max(last.map_or(1, |last| last.at_ms));
        let mark = Mark { offset, stream, at_ms };
        let used = (self.len % BLOCK) as usize;
        let (at, record) = match last {
            Some(last) if used != 0 && used + LONGEST_RECORD <= BLOCK as usize => {
                (self.len, after(last, mark))
            }
            _ => (self.len.next_multiple_of(BLOCK), absolute(mark)),
        };
        self.file.write_all_at(&record, at)?;
        self.len = at + record.len() as u64;
        self.last = Some(mark);
        Ok(())
    }

    /// What the index takes on disk.
    pub(super) fn kept(&self) -> u64 {
        self.len - self.given_back
    }

    /// Gives back the blocks that speak only of bytes in `gone`.
    pub(super) fn give_back(&mut self, gone: &Range<u64>) -> io::Result<()> {
        let mut hole: Option<Range<u64>> = None;
        // The block after the one given back must begin inside the range or at its end.
        while (self.first_kept + 1) * BLOCK < self.len {
            let starts = read_header(&self.file, self.first_kept)?;
            let ends = read_header(&self.file, self.first_kept + 1)?;
            let (Some(starts), Some(ends)) = (starts, ends) else { break };
            if ends.offset > gone.end {
                break;
            }
            if starts.offset >= gone.start {
                let at = self.first_kept * BLOCK;
                hole = Some(hole.map_or(at, |hole| hole.start)..at + BLOCK);
            }
            self.first_kept += 1;
        }
        if let Some(hole) = hole {
            punch_hole(&self.file, hole.start, hole.end - hole.start)?;
            self.given_back += hole.end - hole.start;
        }
        Ok(())
    }
}

/// The runs that make up `range`, cut to it. Bytes of which the index says nothing are left out.
pub(super) fn read(file: &File, range: &Range<u64>) -> io::Result<Vec<Run>> {
    let mut marks: Vec<Mark> = Vec::new();
    let mut block = find_block(file, range.start)?;
    loop {
        let read = read_block(file, block)?;
        // A block that was given back lies before every byte that is still there.
        let done = read.is_empty() || read[0].offset >= range.end;
        marks.extend(read.into_iter().take_while(|mark| mark.offset < range.end));
        if done {
            break;
        }
        block += 1;
    }
    Ok(cut_to(&marks, range))
}

fn cut_to(marks: &[Mark], range: &Range<u64>) -> Vec<Run> {
    let ends = marks.iter().skip(1).map(|mark| mark.offset).chain([range.end]);
    marks
        .iter()
        .zip(ends)
        .map(|(mark, end)| Run {
            range: mark.offset.max(range.start)..end.min(range.end),
            stream: mark.stream,
            at_ms: mark.at_ms,
        })
        .filter(|run| !run.range.is_empty())
        .collect()
}

/// The last block that begins at or before `offset`. Holes count as too early: what they spoke of
/// comes before every byte that can be asked for, but for the head, whose blocks come first.
fn find_block(file: &File, offset: u64) -> io::Result<u64> {
    let (mut low, mut high) = (0, file.metadata()?.len().div_ceil(BLOCK));
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        match first_from(file, middle, high)? {
            Some((found, mark)) if mark.offset <= offset => low = found,
            _ => high = middle,
        }
    }
    Ok(low)
}

/// The first block in `from..end` that was not given back.
fn first_from(file: &File, from: u64, end: u64) -> io::Result<Option<(u64, Mark)>> {
    let Some(data) = next_data(file, from * BLOCK)? else { return Ok(None) };
    for block in (data / BLOCK).max(from)..end {
        if let Some(mark) = read_header(file, block)? {
            return Ok(Some((block, mark)));
        }
    }
    Ok(None)
}

fn read_header(file: &File, block: u64) -> io::Result<Option<Mark>> {
    let mut header = [0; HEADER];
    match file.read_exact_at(&mut header, block * BLOCK) {
        Ok(()) => Ok(decode_header(&header)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

fn read_block(file: &File, block: u64) -> io::Result<Vec<Mark>> {
    let mut bytes = [0; BLOCK as usize];
    let mut len = 0;
    while len < bytes.len() {
        match file.read_at(&mut bytes[len..], block * BLOCK + len as u64)? {
            0 => break,
            more => len += more,
        }
    }
    let mut marks = Vec::new();
    let Some((header, mut rest)) = bytes[..len].split_at_checked(HEADER) else { return Ok(marks) };
    let Some(mut mark) = decode_header(header) else { return Ok(marks) };
    loop {
        // Of two records for one offset the last holds.
        if marks.last().is_some_and(|last: &Mark| last.offset == mark.offset) {
            marks.pop();
        }
        marks.push(mark);
        let Some((step, tail)) = decode_varint(rest) else { return Ok(marks) };
        let Some((time, tail)) = decode_varint(tail) else { return Ok(marks) };
        let Some(step) = step.checked_sub(1) else { return Ok(marks) };
        let stream = decode_stream(step);
        mark = Mark { offset: mark.offset + step / 2, stream, at_ms: mark.at_ms + time };
        rest = tail;
    }
}

fn absolute(mark: Mark) -> Vec<u8> {
    let second = mark.at_ms * 2 + encode_stream(mark.stream);
    [mark.offset.to_le_bytes(), second.to_le_bytes()].concat()
}

fn after(last: Mark, mark: Mark) -> Vec<u8> {
    let mut record = Vec::with_capacity(LONGEST_RECORD);
    // One more than the value, because a zero is padding.
    encode_varint((mark.offset - last.offset) * 2 + encode_stream(mark.stream) + 1, &mut record);
    encode_varint(mark.at_ms - last.at_ms, &mut record);
    record
}

/// `None` for a hole: a real time is never zero.
fn decode_header(header: &[u8]) -> Option<Mark> {
    let word = |at: usize| Some(u64::from_le_bytes(header.get(at..at + 8)?.try_into().ok()?));
    let (offset, second) = (word(0)?, word(8)?);
    (second > 1).then_some(Mark { offset, stream: decode_stream(second), at_ms: second / 2 })
}

fn encode_stream(stream: Stream) -> u64 {
    match stream {
        Stream::Out => 0,
        Stream::Err => 1,
    }
}

fn decode_stream(word: u64) -> Stream {
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
    use proptest::prelude::*;

    fn stream_of(number: u64) -> Stream {
        decode_stream(number)
    }

    /// Writes runs of these lengths, streams in turn, and returns them as they should read back.
    fn write(writer: &mut RunsWriter, lengths: &[u64]) -> Vec<Run> {
        let mut offset = 0;
        let mut want = Vec::new();
        for (number, length) in (0..).zip(lengths) {
            let (stream, at_ms) = (stream_of(number), 5 + number);
            writer.begin(offset, stream, at_ms).expect("write");
            want.push(Run { range: offset..offset + length, stream, at_ms });
            offset += length;
        }
        want
    }

    proptest! {
        #[test]
        fn runs_read_back_as_they_were_written(lengths in prop::collection::vec(1u64..1 << 20, 1..3000)) {
            let mut writer = RunsWriter::new(tempfile::tempfile().expect("file"));
            let want = write(&mut writer, &lengths);
            let total: u64 = lengths.iter().sum();
            prop_assert_eq!(&read(&writer.file, &(0..total)).expect("read"), &want);
            let middle = total / 3..total / 2;
            let cut: Vec<Run> = want.into_iter().filter_map(|run| {
                let range = run.range.start.max(middle.start)..run.range.end.min(middle.end);
                (!range.is_empty()).then_some(Run { range, ..run })
            }).collect();
            prop_assert_eq!(read(&writer.file, &middle).expect("read"), cut);
        }
    }

    #[test]
    fn blocks_of_dropped_bytes_are_given_back_and_the_rest_stays_readable() {
        let mut writer = RunsWriter::new(tempfile::tempfile().expect("file"));
        let want = write(&mut writer, &[1; 100_000]);
        let before = writer.kept();
        writer.give_back(&(10_000..90_000)).expect("punch");
        assert!(writer.kept() < before / 3, "{} of {before} kept", writer.kept());
        assert_eq!(read(&writer.file, &(0..10_000)).expect("read"), want[..10_000]);
        assert_eq!(read(&writer.file, &(90_000..100_000)).expect("read"), want[90_000..]);
    }

    #[test]
    fn of_two_records_for_one_offset_the_last_holds() {
        let mut writer = RunsWriter::new(tempfile::tempfile().expect("file"));
        for stream in [Stream::Out, Stream::Err, Stream::Out] {
            writer.begin(0, stream, 7).expect("write");
        }
        let want = Run { range: 0..3, stream: Stream::Out, at_ms: 7 };
        assert_eq!(read(&writer.file, &(0..3)).expect("read"), [want]);
    }
}
