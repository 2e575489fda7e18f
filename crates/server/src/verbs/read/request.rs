//! What a query means, checked.

use std::num::NonZeroU16;
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
    pub(super) screen: ScreenRequest,
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

/// Which screen, of the view that is one.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ScreenRequest {
    pub(super) at: Option<u64>,
    pub(super) rows: Option<NonZeroU16>,
    pub(super) cols: Option<NonZeroU16>,
    pub(super) ansi: bool,
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
            screen: ScreenRequest::new(query)?,
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
        if asked.view == View::Screen && query.from.is_some() {
            return Err(invalid("`from` cannot be combined with `view=screen`").hint("use `at`"));
        }
        asked.check_size()
    }

    /// A view of all there is.
    pub fn whole_log(view: View, max_bytes: Option<u64>) -> Result<Self, Error> {
        Self::new(&OutputQuery { view: Some(view), max_bytes, ..OutputQuery::default() })
    }

    /// The screen at this offset, or at the end of all there is.
    pub(crate) fn screen(at: Option<u64>) -> Result<Self, Error> {
        let view = Some(View::Screen);
        Self::new(&OutputQuery { view, at, late: Some(true), ..OutputQuery::default() })
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
            View::Text | View::Lines | View::Screen => 64 << 10,
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

impl ScreenRequest {
    fn new(query: &OutputQuery) -> Result<Self, Error> {
        let OutputQuery { view, at, rows, cols, ansi, .. } = *query;
        let is_asked = at.is_some() || rows.is_some() || cols.is_some() || ansi.is_some();
        if is_asked && view != Some(View::Screen) {
            return Err(invalid("`at`, `rows`, `cols` and `ansi` need `view=screen`"));
        }
        let (rows, cols) = (extent("rows", rows)?, extent("cols", cols)?);
        Ok(Self { at, rows, cols, ansi: ansi == Some(true) })
    }
}

fn extent(field: &str, count: Option<u16>) -> Result<Option<NonZeroU16>, Error> {
    let most = OutputQuery::MOST_ROWS_OR_COLS;
    let checked = |count: u16| NonZeroU16::new(count).filter(|count| count.get() <= most);
    let refused = || invalid(format!("`{field}` must be from 1 to {most}"));
    count.map(|count| checked(count).ok_or_else(refused)).transpose()
}
