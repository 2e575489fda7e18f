//! Terminal control: what can stand between the bytes of a secret without being part of its text.
//!
//! That is a carriage return, or a whole escape sequence: `ESC [ parameters letter` (colours, cursor
//! movements) or `ESC` with a few characters (`ESC ( B`). Sequences that carry text of their own, such
//! as titles and links, are ordinary bytes, and so is a sequence that is too long or does not end.

use std::ops::Range;

use super::End;
use super::partial;
use super::patterns::{Match, Patterns};

/// The longest escape sequence, and the most terminal control between two bytes of a secret.
pub(super) const LONGEST: usize = 64;

const ESC: u8 = 0x1b;

/// Whether there may be any of it.
pub(super) fn may_be_in(bytes: &[u8]) -> bool {
    memchr::memchr2(ESC, b'\r', bytes).is_some()
}

/// What stands at the beginning of some bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    Text,
    /// This many bytes of terminal control.
    Control(usize),
    /// It depends on the bytes that follow.
    Undecided,
}

/// `bytes` is not empty.
pub(super) fn token(bytes: &[u8], end: End) -> Token {
    match bytes[0] {
        b'\r' => Token::Control(1),
        ESC => sequence(&bytes[1..bytes.len().min(LONGEST)], bytes.len() >= LONGEST, end),
        _ => Token::Text,
    }
}

/// What follows an ESC; `is_cut` if it is as much as a sequence may have.
fn sequence(bytes: &[u8], is_cut: bool, end: End) -> Token {
    let (is_csi, skipped) = match bytes.first() {
        Some(b'[') => (true, 1),
        // Text of their own follows these: device control, titles and the like.
        Some(b']' | b'P' | b'X' | b'^' | b'_') => return Token::Text,
        _ => (false, 0),
    };
    for (index, byte) in bytes.iter().enumerate().skip(skipped) {
        match byte {
            0x40..=0x7e => return Token::Control(index + 2),
            0x30..=0x3f if !is_csi => return Token::Control(index + 2),
            0x20..=0x3f => {}
            _ => return Token::Text,
        }
    }
    if is_cut || end == End::Here { Token::Text } else { Token::Undecided }
}

pub(super) fn without_control(bytes: &[u8]) -> Vec<u8> {
    let plain = Plain::new(bytes, End::Here);
    plain.segments.into_iter().flat_map(|segment| segment.bytes).collect()
}

/// Bytes without terminal control.
#[derive(Debug)]
pub(super) struct Plain {
    /// In order. No secret reaches from one into the next: between them is too much control.
    segments: Vec<Segment>,
    /// Where terminal control begins and ends.
    controls: Vec<Range<usize>>,
    undecided: usize,
}

#[derive(Debug, Default)]
struct Segment {
    bytes: Vec<u8>,
    /// Where each of them stands.
    offsets: Vec<usize>,
}

impl Plain {
    pub(super) fn new(bytes: &[u8], end: End) -> Self {
        let (mut segments, mut controls, mut at) = (vec![Segment::default()], Vec::new(), 0);
        while at < bytes.len() {
            match token(&bytes[at..], end) {
                Token::Control(len) => {
                    controls.push(at..at + len);
                    at += len;
                }
                Token::Undecided => break,
                Token::Text => {
                    let last = segments.last().and_then(|segment| segment.offsets.last());
                    if last.is_some_and(|last| at - last - 1 > LONGEST) {
                        segments.push(Segment::default());
                    }
                    if let Some(segment) = segments.last_mut() {
                        segment.bytes.push(bytes[at]);
                        segment.offsets.push(at);
                    }
                    at += 1;
                }
            }
        }
        Self { segments, controls, undecided: at }
    }

    pub(super) fn find(&self, patterns: &Patterns) -> Option<Match> {
        self.segments.iter().find_map(|segment| {
            let Match { start, end, pattern } = patterns.find(&segment.bytes, 0)?;
            let [start, last] = [start, end - 1].map(|index| segment.offsets[index]);
            Some(Match { start, end: last + 1, pattern })
        })
    }

    /// How many bytes are decided: a secret may begin there, or terminal control that is not complete.
    pub(super) fn decided(&self, patterns: &Patterns, bytes: &[u8]) -> usize {
        let partials = [self.partial(patterns), partial::begin(patterns, bytes)];
        let decided = partials.into_iter().fold(self.undecided, usize::min);
        // Control is decided as a whole: what is read from the middle of it looks like text.
        let around = self.controls.iter().rev().find(|control| control.start <= decided);
        around.filter(|control| decided < control.end).map_or(decided, |control| control.start)
    }

    /// The first offset from which all text may be the beginning of a secret.
    fn partial(&self, patterns: &Patterns) -> usize {
        let Some(Segment { bytes, offsets }) = self.segments.last() else { return usize::MAX };
        let is_cut = offsets.last().is_none_or(|last| self.undecided - last - 1 > LONGEST);
        let begin = partial::begin(patterns, bytes);
        offsets.get(begin).copied().filter(|_| !is_cut).unwrap_or(usize::MAX)
    }
}
