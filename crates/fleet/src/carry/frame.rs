//! One message of a stream: what it is, an offset, and bytes.

use bytes::{Buf, BufMut, Bytes, BytesMut};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Frame {
    /// The first bytes of a stream.
    Open(Bytes),
    /// Bytes from this offset.
    Data(u64, Bytes),
    /// Everything before `read` was read. Repeated to say that this end is there, and how much it has
    /// sent: so it is noticed that the last message was lost.
    Ack { read: u64, sent: u64 },
    /// No bytes come from this offset on.
    End(u64),
    /// The same, and none are read any more.
    Close(u64),
}

/// A kind and an offset.
pub(super) const HEADER: usize = 9;

impl Frame {
    /// `None` if it is not ours, or of a later version.
    pub(super) fn parse(mut message: Bytes) -> Option<Self> {
        let kind = message.first().copied()?;
        message.advance(1);
        let offset = message.try_get_u64().ok()?;
        match (kind, message) {
            (b'O', bytes) if offset == 0 => Some(Self::Open(bytes)),
            (b'D', bytes) => Some(Self::Data(offset, bytes)),
            (b'A', mut rest) => Some(Self::Ack { read: offset, sent: rest.try_get_u64().ok()? }),
            (b'E', _) => Some(Self::End(offset)),
            (b'C', _) => Some(Self::Close(offset)),
            _ => None,
        }
    }

    /// The header of a message; its bytes follow.
    pub(super) fn put_header(&self, into: &mut BytesMut) {
        let (kind, offset) = match self {
            Self::Open(_) => (b'O', 0),
            Self::Data(offset, _) => (b'D', *offset),
            Self::Ack { read, .. } => (b'A', *read),
            Self::End(offset) => (b'E', *offset),
            Self::Close(offset) => (b'C', *offset),
        };
        into.put_u8(kind);
        into.put_u64(offset);
    }

    /// A message without bytes.
    pub(super) fn to_message(&self) -> Bytes {
        let mut message = BytesMut::with_capacity(HEADER + size_of::<u64>());
        self.put_header(&mut message);
        if let Self::Ack { sent, .. } = self {
            message.put_u64(*sent);
        }
        message.freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_what_was_sent() {
        let bytes = Bytes::from_static(b"\0x\xff");
        let some = [Frame::Ack { read: 7, sent: 9 }, Frame::End(0), Frame::Close(u64::MAX)];
        for frame in some {
            assert_eq!(Frame::parse(frame.to_message()), Some(frame));
        }
        for frame in [Frame::Open(bytes.clone()), Frame::Data(3, bytes.clone())] {
            let mut message = BytesMut::new();
            frame.put_header(&mut message);
            message.extend_from_slice(&bytes);
            assert_eq!(Frame::parse(message.freeze()), Some(frame));
        }
    }

    #[test]
    fn what_is_not_ours_is_no_message() {
        for bytes in [&b""[..], b"D", b"D1234567", b"A12345678", b"Z12345678", b"O12345678x"] {
            assert_eq!(Frame::parse(Bytes::from_static(bytes)), None, "{bytes:?}");
        }
    }
}
