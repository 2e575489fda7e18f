//! What to look for, and what to write instead.

use std::fmt;

use aho_corasick::packed::{self, Searcher};
use aho_corasick::{AhoCorasick, BuildError, Input, MatchKind, Span};

use super::control::{LONGEST, without_control};
use super::secret::Secret;

/// The secrets of a process, ready to be searched for.
pub struct Patterns {
    /// Thirty times as fast, where the processor has the instructions and the secrets are not too many.
    packed: Option<Searcher>,
    search: AhoCorasick,
    patterns: Vec<Vec<u8>>,
    /// For each pattern.
    masks: Vec<Vec<u8>>,
    longest: usize,
    /// Whether a pattern begins with this byte.
    begins: [bool; 256],
}

/// A secret in a stream of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Match {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) pattern: usize,
}

impl Patterns {
    /// Each secret is looked for as it is and without its terminal control. Of equal secrets, the
    /// first gives its name.
    pub fn new(secrets: &[Secret]) -> Result<Self, BuildError> {
        let (mut patterns, mut masks) = (Vec::<Vec<u8>>::new(), Vec::new());
        for secret in secrets {
            for pattern in [secret.value().to_vec(), without_control(secret.value())] {
                if !patterns.contains(&pattern) {
                    patterns.push(pattern);
                    masks.push(format!("***{}***", secret.name()).into_bytes());
                }
            }
        }
        let search =
            AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&patterns)?;
        let config = packed::Config::new().match_kind(packed::MatchKind::LeftmostLongest).clone();
        let packed = config.builder().extend(&patterns).build();
        let longest = patterns.iter().map(Vec::len).max().unwrap_or(0);
        let mut begins = [false; 256];
        patterns.iter().for_each(|pattern| begins[usize::from(pattern[0])] = true);
        Ok(Self { packed, search, patterns, masks, longest, begins })
    }

    pub(super) fn find(&self, bytes: &[u8], from: usize) -> Option<Match> {
        let found = match &self.packed {
            Some(packed) => packed.find_in(bytes, Span { start: from, end: bytes.len() })?,
            None => self.search.find(Input::new(bytes).range(from..))?,
        };
        let (start, end) = (found.start(), found.end());
        Some(Match { start, end, pattern: found.pattern().as_usize() })
    }

    pub(super) fn mask(&self, pattern: usize) -> &[u8] {
        &self.masks[pattern]
    }

    /// The most that a masker can hold back: all but the last byte of a secret, with terminal control
    /// between its bytes.
    pub fn most_undecided(&self) -> usize {
        self.longest.saturating_mul(1 + LONGEST) + LONGEST
    }

    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    /// Whether a secret is longer than these bytes and begins with them.
    pub(super) fn is_begun_by(&self, bytes: &[u8]) -> bool {
        self.begins[usize::from(bytes[0])]
            && self
                .patterns
                .iter()
                .any(|pattern| pattern.len() > bytes.len() && pattern.starts_with(bytes))
    }
}

impl fmt::Debug for Patterns {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Patterns").field("count", &self.patterns.len()).finish_non_exhaustive()
    }
}
