//! What a query means, checked.

use std::ops::Range;

use lastbyte_wire::{Error, OutputQuery, Stream, View};

use crate::from_wire::invalid;

/// A view that can be made.
#[derive(Debug, Clone)]
pub struct ReadRequest {
    pub(super) view: View,
    pub(super) stream: Option<Stream>,
    pub(super) late: bool,
    pub(super) lines: Which,
    /// Negative counts from the end.
    from: i64,
    max_bytes: Option<u64>,
}

/// Which lines, of the view that has any.
#[derive(Debug, Clone, Copy)]
pub(super) enum Which {
    First(u64),
    Last(u64),
}

/// What a view that is made in memory shows at most.
const MOST: u64 = 4 << 20;
const USUAL_LINES: u64 = 100;

impl ReadRequest {
    pub(super) fn new(query: &OutputQuery) -> Result<Self, Error> {
        let lines = match (query.first, query.last) {
            (Some(_), Some(_)) => return Err(invalid("`first` and `last` cannot be combined")),
            (Some(first), None) => Which::First(first),
            (None, last) => Which::Last(last.unwrap_or(USUAL_LINES)),
        };
        let asked = Self {
            view: query.view.unwrap_or(View::Raw),
            stream: query.stream,
            late: query.late == Some(true),
            lines,
            from: query.from.unwrap_or(0),
            max_bytes: query.max_bytes,
        };
        let is_lines = asked.view == View::Lines;
        if !is_lines && (query.first.is_some() || query.last.is_some()) {
            return Err(invalid("`first` and `last` need `view=lines`"));
        }
        if is_lines && query.from.is_some() {
            return Err(invalid("`from` cannot be combined with `view=lines`")
                .hint("use `first` or `last`, or another view"));
        }
        asked.check_size()
    }

    /// A view of all there is.
    pub fn whole_log(view: View, max_bytes: Option<u64>) -> Result<Self, Error> {
        Self::new(&OutputQuery { view: Some(view), max_bytes, ..OutputQuery::default() })
    }

    fn check_size(self) -> Result<Self, Error> {
        // What is sent while it is read takes no memory.
        let streamed = self.view == View::Raw && self.stream.is_none();
        match self.max_bytes {
            Some(0) => Err(invalid("`max_bytes` must be greater than 0")),
            Some(most) if most > MOST && !streamed => {
                Err(invalid(format!("`max_bytes` must be at most {MOST} for this view")))
            }
            Some(_) | None => Ok(self),
        }
    }

    /// How many bytes it shows.
    pub(super) fn budget(&self) -> usize {
        let usual = match self.view {
            View::Raw => 1 << 20,
            View::HeadTail => 32 << 10,
            View::Text | View::Lines => 64 << 10,
        };
        self.max_bytes.map_or(usual, |most| usize::try_from(most).unwrap_or(usize::MAX))
    }

    /// How many bytes of this range it may have to read: folded lines and bytes of the other stream
    /// do not count for the budget.
    pub(super) fn reads(&self, range: Range<u64>) -> u64 {
        let all = range.end.saturating_sub(range.start);
        let is_bounded = self.view != View::Text && self.stream.is_none();
        if is_bounded { all.min(self.budget() as u64) } else { all }
    }

    /// Where to begin in what ends at `end`.
    pub(super) fn cursor(&self, end: u64) -> u64 {
        match self.from {
            from if from < 0 => end.saturating_sub(from.unsigned_abs()),
            from => (from as u64).min(end),
        }
    }

    /// Past which byte something is new. A cursor that counts from the end is past all there is.
    pub(super) fn waits_past(&self, len: u64) -> u64 {
        u64::try_from(self.from).unwrap_or(len)
    }
}
