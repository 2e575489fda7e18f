//! Replaces secrets in a stream of output by `***NAME***`, before the bytes are stored.
//!
//! A secret is found by its value, wherever the stream was cut into chunks. Of the matches that begin
//! first, the longest is taken, and the search goes on after it. Terminal control that stands between
//! the bytes of a secret (`control`) does not hide it, and is replaced together with it. It is looked
//! for in the bytes as they are as well, because a secret can look like terminal control.
//!
//! Bytes that may be the beginning of a secret are held back until they are one, or cannot be one any
//! more. What comes out depends only on the bytes that went in, never on the chunks. Nothing that came
//! out depends on bytes before [`Masker::undecided`]: another masker that is given those again goes on
//! exactly where this one was.

mod control;
mod partial;
mod patterns;
mod secret;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use control::Plain;
use patterns::Match;

pub use patterns::Patterns;
pub use secret::{Secret, SecretError};

/// As many held bytes as an ending may show: half of the shortest secret.
const MOST_SHOWN: usize = Secret::SHORTEST / 2;
/// How much is searched at once where there is terminal control.
const PIECE: usize = 8 << 10;

/// Masks one stream.
#[derive(Debug)]
pub struct Masker {
    patterns: Arc<Patterns>,
    held: Vec<u8>,
    /// How many of the held bytes came out already.
    shown: usize,
    masked: u64,
}

/// Where a masker is in its stream, apart from the bytes that it holds back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MaskState {
    /// How many secrets were replaced.
    pub masked: u64,
    /// How many of the bytes that follow came out already.
    pub shown: usize,
}

impl Masker {
    pub fn new(patterns: Arc<Patterns>) -> Self {
        Self::resume(patterns, MaskState::default())
    }

    /// To be given the undecided bytes of another masker first.
    pub fn resume(patterns: Arc<Patterns>, state: MaskState) -> Self {
        let MaskState { masked, shown } = state;
        Self { patterns, held: Vec::new(), shown, masked }
    }

    pub fn state(&self) -> MaskState {
        MaskState { masked: self.masked, shown: self.shown }
    }

    /// How many secrets were replaced.
    pub fn masked(&self) -> u64 {
        self.masked
    }

    /// How many of the last bytes are held back.
    pub fn undecided(&self) -> usize {
        self.held.len()
    }

    /// Masks these bytes and appends to `out` what can be decided.
    pub fn push(&mut self, input: &[u8], out: &mut Vec<u8>) {
        if !control::may_be_in(&self.held) && !control::may_be_in(input) {
            return self.push_piece(input, out);
        }
        input.chunks(PIECE).for_each(|piece| self.push_piece(piece, out));
    }

    /// The stream is at its end: what is held back is no secret.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        let held = std::mem::take(&mut self.held);
        self.mask(&held, End::Here, out);
    }

    /// Lets out what is held back, if it is so short that it shows nothing. If it turns out to be the
    /// beginning of a secret, the rest of it is masked.
    pub fn show_few(&mut self, out: &mut Vec<u8>) {
        if self.held.len() <= MOST_SHOWN {
            out.extend_from_slice(&self.held[self.shown.min(self.held.len())..]);
            self.shown = self.shown.max(self.held.len());
        }
    }

    fn push_piece(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        if self.held.is_empty() {
            let decided = self.mask(piece, End::Open, out);
            self.held.extend_from_slice(&piece[decided..]);
            return;
        }
        let mut bytes = std::mem::take(&mut self.held);
        bytes.extend_from_slice(piece);
        let decided = self.mask(&bytes, End::Open, out);
        bytes.drain(..decided);
        self.held = bytes;
    }

    /// Returns how many bytes are decided.
    fn mask(&mut self, bytes: &[u8], end: End, out: &mut Vec<u8>) -> usize {
        let patterns = Arc::clone(&self.patterns);
        if !control::may_be_in(bytes) {
            return self.mask_plain(&patterns, bytes, end, out);
        }
        let mut done = 0;
        loop {
            // After each match, because it can end in the middle of terminal control.
            let rest = &bytes[done..];
            let plain = Plain::new(rest, end);
            let open = end.limit(rest, || plain.decided(&patterns, rest));
            match first(patterns.find(rest, 0), plain.find(&patterns)) {
                Some(found) if found.start < open => {
                    self.replace(&patterns, rest, &found, out);
                    done += found.end;
                }
                _ => {
                    self.copy(&rest[..open], out);
                    return done + open;
                }
            }
        }
    }

    /// Of bytes without terminal control.
    fn mask_plain(
        &mut self,
        patterns: &Patterns,
        bytes: &[u8],
        end: End,
        out: &mut Vec<u8>,
    ) -> usize {
        let mut done = 0;
        while let Some(Match { start, end: match_end, pattern }) = patterns.find(bytes, done) {
            // Something that began before it may still be a secret.
            let is_near_end = start + patterns.longest() > bytes.len();
            let open = || done + partial::begin(patterns, &bytes[done..]);
            if end == End::Open && is_near_end && start >= open() {
                break;
            }
            let found = Match { start: start - done, end: match_end - done, pattern };
            self.replace(patterns, &bytes[done..], &found, out);
            done = match_end;
        }
        let rest = &bytes[done..];
        let open = end.limit(rest, || partial::begin(patterns, rest));
        self.copy(&rest[..open], out);
        done + open
    }

    fn replace(&mut self, patterns: &Patterns, bytes: &[u8], found: &Match, out: &mut Vec<u8>) {
        self.copy(&bytes[..found.start], out);
        out.extend_from_slice(patterns.mask(found.pattern));
        self.shown = self.shown.saturating_sub(found.end - found.start);
        self.masked += 1;
    }

    fn copy(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let shown = self.shown.min(bytes.len());
        out.extend_from_slice(&bytes[shown..]);
        self.shown -= shown;
    }
}

/// Whether more bytes may follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Open,
    Here,
}

impl End {
    /// How many of these bytes are decided.
    fn limit(self, bytes: &[u8], open: impl FnOnce() -> usize) -> usize {
        match self {
            Self::Open => open(),
            Self::Here => bytes.len(),
        }
    }
}

/// The one that begins first; of two, the one that ends last.
fn first(one: Option<Match>, other: Option<Match>) -> Option<Match> {
    let (Some(one), Some(other)) = (&one, &other) else { return one.or(other) };
    let is_other = (other.start, one.end) < (one.start, other.end);
    Some(if is_other { *other } else { *one })
}
