//! The bytes as they are, after a cursor.

use std::{io, ops::Range};

use super::Source;
use super::mapped_bytes::{SourcePart, read_parts};

/// The bytes after a cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raw {
    pub segments: Vec<Segment>,
    /// The cursor to continue from; unchanged if there was nothing to read.
    pub next: u64,
}

/// Bytes that are there, or a dropped range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    /// `range` is longer than `bytes` if it spans bytes of another stream.
    Bytes {
        range: Range<u64>,
        bytes: Vec<u8>,
    },
    Dropped(Range<u64>),
}

/// The bytes after `cursor`, at most `max_bytes`. They may be cut within a character.
pub fn since(source: &dyn Source, cursor: u64, max_bytes: usize) -> io::Result<Raw> {
    let (parts, next) = read_parts(source, cursor..source.end(), max_bytes)?;
    Ok(Raw { segments: parts.into_iter().map(Segment::from).collect(), next })
}

impl From<SourcePart> for Segment {
    fn from(part: SourcePart) -> Self {
        match part {
            SourcePart::Kept(kept) => Self::Bytes { range: kept.range(), bytes: kept.into_bytes() },
            SourcePart::Dropped(range) => Self::Dropped(range),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::Slice, *};

    fn bytes(range: Range<u64>, bytes: &[u8]) -> Segment {
        Segment::Bytes { range, bytes: bytes.to_vec() }
    }

    #[test]
    fn a_dropped_range_is_a_segment() {
        let source = Slice::new(b"abcdefgh").without(2..5);
        let want = [bytes(0..2, b"ab"), Segment::Dropped(2..5), bytes(5..8, b"fgh")];
        assert_eq!(since(&source, 0, 100).unwrap(), Raw { segments: want.to_vec(), next: 8 });
        let want = [Segment::Dropped(3..5), bytes(5..6, b"f")];
        assert_eq!(since(&source, 3, 1).unwrap(), Raw { segments: want.to_vec(), next: 6 });
    }

    #[test]
    fn a_cursor_at_or_past_the_end_does_not_move() {
        let source = Slice::new(b"abc");
        for cursor in [3, 4, u64::MAX] {
            let want = Raw { segments: vec![], next: cursor };
            assert_eq!(since(&source, cursor, 100).unwrap(), want);
        }
    }
}
