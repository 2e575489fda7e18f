//! Where the frames of a WebSocket begin and end, without looking at what they carry.

/// Gathers the header of one frame (RFC 6455, 5.2).
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct HeaderBytes {
    bytes: [u8; 14],
    count: usize,
}

/// What a frame says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    /// The last frame of its message, the reserved bits and the kind of frame.
    pub(super) first: u8,
    pub(super) len: u64,
    pub(super) mask: Option<[u8; 4]>,
}

const LAST: u8 = 0x80;
const CONTROL: u8 = 0x08;
const KIND: u8 = 0x0f;
const MASKED: u8 = 0x80;

impl HeaderBytes {
    /// Takes one byte; the header, if it is whole.
    pub(super) fn push(&mut self, byte: u8) -> Option<Header> {
        self.bytes[self.count] = byte;
        self.count += 1;
        let [first, second, ..] = self.bytes;
        let length_end = match second & !MASKED {
            126 => 4,
            127 => 10,
            _ => 2,
        };
        let is_masked = second & MASKED != 0;
        let end = length_end + if is_masked { 4 } else { 0 };
        if self.count < 2 || self.count < end {
            return None;
        }
        let len = match &self.bytes[2..length_end] {
            [] => u64::from(second & !MASKED),
            long => long.iter().fold(0, |len, byte| len << 8 | u64::from(*byte)),
        };
        let mask = is_masked.then(|| std::array::from_fn(|at| self.bytes[length_end + at]));
        self.count = 0;
        Some(Header { first, len, mask })
    }
}

impl Header {
    pub(super) fn is_last(&self) -> bool {
        self.first & LAST != 0
    }

    pub(super) fn is_control(&self) -> bool {
        self.first & CONTROL != 0
    }

    /// Cuts a frame in two. The first has this many bytes, a multiple of four: the mask of the
    /// second begins with its first byte, too.
    pub(super) fn split_at(self, len: u64) -> (Self, Self) {
        let rest = Self { first: self.first & !KIND, len: self.len - len, ..self };
        (Self { first: self.first & !LAST, len, ..self }, rest)
    }

    /// As it is sent.
    pub(super) fn to_bytes(self) -> Vec<u8> {
        let masked = if self.mask.is_some() { MASKED } else { 0 };
        let mut bytes = match self.len {
            0..126 => vec![self.first, masked | self.len as u8],
            126..0x1_0000 => [&[self.first, masked | 126], &self.len.to_be_bytes()[6..]].concat(),
            _ => [&[self.first, masked | 127], &self.len.to_be_bytes()[..]].concat(),
        };
        bytes.extend(self.mask.into_iter().flatten());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_it_is_written() {
        for len in [0, 1, 125, 126, 65_535, 65_536, u64::MAX] {
            for mask in [None, Some([9, 0, 255, 7])] {
                let want = Header { first: 0x82, len, mask };
                let mut gathered = HeaderBytes::default();
                let read: Vec<_> =
                    want.to_bytes().into_iter().filter_map(|byte| gathered.push(byte)).collect();
                assert_eq!(read, [want]);
            }
        }
    }

    #[test]
    fn a_frame_that_is_cut_in_two_is_continued_and_ends_once() {
        let mask = Some([1, 2, 3, 4]);
        let (begin, rest) = Header { first: 0x82, len: 10, mask }.split_at(8);
        assert_eq!(begin, Header { first: 0x02, len: 8, mask });
        assert_eq!(rest, Header { first: 0x80, len: 2, mask });
        let (begin, rest) = Header { first: 0x01, len: 10, mask }.split_at(4);
        assert_eq!((begin.first, rest.first), (0x01, 0x00));
    }
}
