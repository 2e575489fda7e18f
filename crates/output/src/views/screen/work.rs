//! How much work bytes are for a terminal: a few of them can clear, reset or fill the whole screen.

use memchr::{memchr, memchr3_iter};

use super::Terminal;
use super::ground::Ground;

/// What one screen may take: some seconds of repeated characters, or 16 MiB of what programs write.
pub(super) const MOST_WORK: u64 = 2_000_000_000;

/// The work of all bytes so far, in about nanoseconds.
#[derive(Debug)]
pub(super) struct Work {
    terminal: Terminal,
    done: u64,
    ground: Ground,
    /// The number in a sequence that is read, and whether one was that of the other screen.
    number: u64,
    switches: bool,
}

impl Work {
    pub(super) fn new(terminal: Terminal) -> Self {
        Self { terminal, done: 0, ground: Ground::default(), number: 0, switches: false }
    }

    /// Adds the work of these bytes; whether all of it is too much.
    pub(super) fn is_too_much_with(&mut self, bytes: &[u8]) -> bool {
        let mut rest = bytes;
        while let Some((byte, after)) = rest.split_first() {
            if self.ground == Ground::Text {
                let end = memchr(0x1b, rest).unwrap_or(rest.len());
                let newlines = memchr3_iter(b'\n', 0x0b, 0x0c, &rest[..end]).count() as u64;
                // Text that is wrapped starts lines, too.
                self.done += end as u64 * (20 + self.line() / self.cols()) + newlines * self.line();
                rest = &rest[end..];
                if !rest.is_empty() {
                    (self.ground, rest) = (Ground::Escape, &rest[1..]);
                }
            } else {
                self.follow(*byte);
                rest = after;
            }
        }
        self.done > MOST_WORK
    }

    fn cells(&self) -> u64 {
        u64::from(self.terminal.rows.get()) * self.cols()
    }

    fn cols(&self) -> u64 {
        self.terminal.cols.get().into()
    }

    /// When a line is started at the end, all rows move.
    fn line(&self) -> u64 {
        u64::from(self.terminal.rows.get()) + self.cells() / 50
    }

    fn follow(&mut self, byte: u8) {
        match (self.ground, byte) {
            (Ground::Escape, b'c') => self.done += 8 * self.cells(),
            (Ground::Escape, b'M') => self.done += self.cells() / 5,
            (Ground::Escape, b'[') => (self.number, self.switches) = (0, false),
            (Ground::Csi, b'0'..=b'9') => {
                self.number = self.number.saturating_mul(10).saturating_add((byte - b'0').into());
            }
            (Ground::Csi, b';') => {
                self.switches |= matches!(self.number, 47 | 1049);
                self.number = 0;
            }
            (_, b'\n' | 0x0b | 0x0c) => self.done += self.line(),
            (Ground::Csi, b'@'..=b'~') => self.done += 20 + self.sequence(byte),
            _ => {}
        }
        self.ground = self.ground.after(byte);
    }

    fn sequence(&self, last: u8) -> u64 {
        // The terminal reads numbers of 16 bits.
        let count = self.number.clamp(1, u16::MAX.into());
        match last {
            b'b' => 40 * count,
            b'J' => 2 * self.cells(),
            b'h' | b'l' if self.switches || matches!(self.number, 47 | 1049) => 2 * self.cells(),
            b'L' | b'M' | b'S' | b'T' => count * self.cols() + self.line(),
            b'@' | b'P' | b'X' | b'K' => self.cols(),
            _ => 0,
        }
    }
}
