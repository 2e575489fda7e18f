//! Where a terminal is between two characters or sequences.

use memchr::memchr;

/// Follows the sequences in the bytes that a terminal reads, as the `vte` crate does. In doubt it says that a
/// sequence has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Ground {
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// After ESC and an intermediate byte.
    LongEscape,
    Csi,
    /// OSC, which BEL ends too.
    Command,
    /// DCS, SOS, PM or APC.
    String,
}

impl Ground {
    /// Reads these bytes and returns the last offset in them at which a character or sequence has ended: 0 if there is
    /// none.
    pub(super) fn last_border(&mut self, bytes: &[u8]) -> usize {
        let (mut at, mut border) = (0, 0);
        while at < bytes.len() {
            if *self == Self::Text {
                let end = memchr(0x1b, &bytes[at..]).map_or(bytes.len(), |escape| at + escape);
                // A character that is not ASCII may continue in the next bytes.
                let ascii = bytes[at..end].iter().rposition(u8::is_ascii);
                border = ascii.map_or(border, |last| at + last + 1);
                if end == bytes.len() {
                    break;
                }
                (at, *self) = (end + 1, Self::Escape);
            } else {
                *self = self.after(bytes[at]);
                at += 1;
                if *self == Self::Text {
                    border = at;
                }
            }
        }
        border
    }

    /// After this byte.
    pub(super) fn after(self, byte: u8) -> Self {
        match (self, byte) {
            (_, 0x1b) => Self::Escape,
            (Self::Text, _) => Self::Text,
            // CAN and SUB abort a sequence.
            (_, 0x18 | 0x1a) => Self::Text,
            (Self::Escape, b'[') => Self::Csi,
            (Self::Escape, b']') => Self::Command,
            (Self::Escape, b'P' | b'X' | b'^' | b'_') => Self::String,
            (Self::Escape | Self::LongEscape, b' '..=b'/') => Self::LongEscape,
            (Self::Escape | Self::LongEscape, b'0'..=b'~') => Self::Text,
            (Self::Csi, b'@'..=b'~') => Self::Text,
            (Self::Command, 0x07) => Self::Text,
            (state, _) => state,
        }
    }
}
