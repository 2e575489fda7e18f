//! Searches line by line and keeps the state between lines.

use std::{
    collections::VecDeque,
    io, iter,
    ops::{ControlFlow, Range},
};

use super::splitter::{LONGEST_LINE, SplitLine, TextKind, without_line_ending};
use super::texts::Texts;
use super::{Found, FoundLine, Hit, Match, Query, Stopped};
use crate::views::{
    Source,
    walk::{Walk, WalkStep},
};

const MAX_HITS: usize = 64;

pub(super) struct Searcher<'q> {
    query: &'q Query,
    texts: Texts,
    matches: Vec<Match>,
    dropped: Vec<Range<u64>>,
    /// Lines that may become context before a match.
    before: VecDeque<LineBefore>,
    /// How many more lines of context the last match gets.
    after: u8,
    /// If the line continues, the index in its next part where the last hit ended.
    hit_end: Option<usize>,
    /// Whether an overwritten text of the current line matched.
    overwritten_matched: bool,
    /// `None` after a dropped range.
    number: Option<u64>,
    /// Whether the next text continues a line.
    within_line: bool,
    /// How much text has been returned.
    given: usize,
    scanned: u64,
    next: Place,
}

/// Where to continue.
#[derive(Clone, Copy)]
struct Place {
    at: u64,
    /// The number of the line there.
    number: Option<u64>,
}

struct LineBefore {
    line: FoundLine,
    /// Where it starts. `None` if a search from there could find a match in it: if it is a later part
    /// of a long line, or matched before it was overwritten.
    start: Option<Place>,
}

impl<'q> Searcher<'q> {
    pub(super) fn new(query: &'q Query) -> Self {
        Self {
            query,
            texts: Texts::new(query.reading),
            matches: Vec::new(),
            dropped: Vec::new(),
            before: VecDeque::new(),
            after: 0,
            hit_end: None,
            overwritten_matched: false,
            number: Some(0),
            within_line: false,
            given: 0,
            scanned: 0,
            next: Place { at: query.from, number: Some(0) },
        }
    }

    pub(super) fn search(mut self, source: &dyn Source) -> io::Result<Found> {
        self.texts.start_at(source, self.query.from.min(source.end()))?;
        let mut walk = Walk::new(source, self.query.from..source.end());
        let stopped = if self.is_full() {
            Stopped::Matches
        } else {
            match walk.try_for_each(|step| self.take(step))? {
                ControlFlow::Break(stopped) => stopped,
                ControlFlow::Continue(()) => self.take_end(walk.at()),
            }
        };
        if matches!(stopped, Stopped::Work | Stopped::Bytes) {
            self.go_back_for_context();
        }
        // The last match may be on the last line: then nothing is left to search.
        let at_end = stopped == Stopped::Matches && self.next.at >= source.end();
        let stopped = if at_end { Stopped::End } else { stopped };
        let Self { matches, dropped, next: Place { at: next, number: next_number }, .. } = self;
        Ok(Found { matches, dropped, next, next_number, stopped })
    }

    /// Continues where the context of the next match may begin. Goes back by half of the limit at most,
    /// so that each search makes progress.
    fn go_back_for_context(&mut self) {
        let earliest = self.next.at.saturating_sub(self.query.max_scanned / 2);
        let mut starts = self.before.iter().filter_map(|before| before.start);
        if let Some(start) = starts.find(|start| start.at >= earliest) {
            self.next = start;
        }
    }

    fn take(&mut self, step: WalkStep<'_>) -> ControlFlow<Stopped> {
        match step {
            WalkStep::Bytes(mut chunk) => {
                while let Some(line) = self.texts.feed(&mut chunk) {
                    self.take_line(&line)?;
                    self.texts.reuse(line);
                }
            }
            WalkStep::Dropped(range) => {
                while let Some(line) = self.texts.end_line() {
                    self.take_line(&line)?;
                }
                self.before.clear();
                self.after = 0;
                // The next bytes never continue the line before the dropped range.
                self.hit_end = None;
                self.overwritten_matched = false;
                self.within_line = false;
                self.number = None;
                self.check_limits()?;
                self.dropped.push(range);
            }
        }
        ControlFlow::Continue(())
    }

    /// Takes the last line, which may still grow: a search that continues within it counts it again.
    fn take_end(&mut self, end: u64) -> Stopped {
        let (mut next, found, number) = (end, self.matches.len(), self.number);
        while let Some(line) = self.texts.end_line() {
            let (again, was_full) = (self.resume_offset(&line), self.is_full());
            let flow = self.take_line(&line);
            if !was_full {
                self.next.number = number;
            }
            if let ControlFlow::Break(stopped @ (Stopped::Matches | Stopped::Bytes)) = flow {
                return stopped;
            }
            next = again;
        }
        let at = if self.matches.len() > found { end } else { next };
        self.stop_at_end(Place { at, number })
    }

    fn stop_at_end(&mut self, next: Place) -> Stopped {
        if self.is_full() {
            return Stopped::Matches;
        }
        self.next = next;
        Stopped::End
    }

    fn take_line(&mut self, line: &SplitLine) -> ControlFlow<Stopped> {
        self.scanned += line.scanned as u64;
        let ends_line = line.kind == TextKind::Whole;
        let next_number = self.number.map(|number| number + u64::from(ends_line));
        if self.is_full() {
            self.add_context(line);
        } else {
            let hits = self.hits(line);
            if hits.is_empty() {
                self.add_context(line);
            } else {
                self.add_match(line, &hits)?;
                self.overwritten_matched |= line.kind == TextKind::Overwritten;
            }
            let hit_end = hits.last().map(|hit| hit.end);
            self.next = Place { at: line.next(hit_end), number: next_number };
            let continued = hit_end.filter(|_| line.kind == TextKind::Part);
            self.hit_end = continued.and_then(|end| end.checked_sub(line.resume));
        }
        if line.kind == TextKind::Overwritten && !self.is_full() {
            // The line is searched to its end, unless it is too long.
            return self.check_work(LONGEST_LINE as u64);
        }
        if ends_line {
            self.overwritten_matched = false;
        }
        self.number = next_number;
        self.within_line = !ends_line;
        self.check_limits()
    }

    /// The offset from which to search a line again without finding the same hits.
    fn resume_offset(&self, line: &SplitLine) -> u64 {
        match self.hit_end {
            Some(end) => line.mapped.offset(end),
            None if self.overwritten_matched => self.next.at,
            None if line.known > 0 => line.mapped.offset(0),
            None => line.range.start,
        }
    }

    /// The hits not returned with the part before: those that end after its bytes.
    fn hits(&self, line: &SplitLine) -> Vec<Range<usize>> {
        // One overwritten text of a line is enough. Its last text is reported, too.
        if line.kind == TextKind::Overwritten && self.overwritten_matched {
            return Vec::new();
        }
        let (text, mut last_end) = (line.text(), self.hit_end);
        let mut at = last_end.unwrap_or(0);
        let all = iter::from_fn(|| {
            while at <= text.len() {
                let found = self.query.regex.find_at(text, at)?;
                at = found.end();
                // The rule of `find_iter`, which cannot start in the middle of a text.
                if !found.is_empty() || last_end != Some(at) {
                    last_end = Some(at);
                    return Some(found.range());
                }
                at += 1;
            }
            None
        });
        all.filter(|hit| hit.end >= line.known).take(MAX_HITS).collect()
    }

    fn add_match(&mut self, line: &SplitLine, hits: &[Range<usize>]) -> ControlFlow<Stopped> {
        let again = self.resume_offset(line);
        // Bytes of the part before are returned again only if a hit begins in them.
        let from = hits.first().map_or(line.known, |first| first.start.min(line.known));
        let hit = |found: &Range<usize>| Hit {
            text: found.start - from..found.end - from,
            range: line.range_of(found.clone()),
        };
        let hits = hits.iter().map(hit).collect();
        let line = FoundLine::from_index(line, from);
        let budget = self.query.max_bytes.saturating_sub(self.given);
        if line.text.len() > budget && !self.matches.is_empty() {
            self.next = Place { at: again, number: self.number };
            return ControlFlow::Break(Stopped::Bytes);
        }
        let mut size = line.text.len()
            + self.before.iter().map(|before| before.line.text.len()).sum::<usize>();
        while size > budget
            && let Some(oldest) = self.before.pop_front()
        {
            size -= oldest.line.text.len();
        }
        self.given += size;
        self.after = self.query.after;
        let before = self.before.drain(..).map(|before| before.line).collect();
        self.matches.push(Match { number: self.number, line, hits, before, after: Vec::new() });
        ControlFlow::Continue(())
    }

    fn add_context(&mut self, line: &SplitLine) {
        let is_wanted = self.after > 0 || self.query.before > 0;
        if !is_wanted || line.kind == TextKind::Overwritten {
            return;
        }
        let line = FoundLine::from_index(line, line.known);
        if let Some(last) = self.matches.last_mut().filter(|_| self.after > 0) {
            self.after -= 1;
            if self.given + line.text.len() > self.query.max_bytes {
                self.after = 0;
                return;
            }
            self.given += line.text.len();
            last.after.push(line);
        } else {
            if self.before.len() == usize::from(self.query.before) {
                self.before.pop_front();
            }
            let may_start_here = !self.within_line && !self.overwritten_matched;
            let start = Place { at: line.range.start, number: self.number };
            self.before.push_back(LineBefore { line, start: may_start_here.then_some(start) });
        }
    }

    fn is_full(&self) -> bool {
        self.matches.len() >= self.query.max_matches
    }

    fn check_limits(&self) -> ControlFlow<Stopped> {
        // The next search cannot add context to this match.
        let context = if self.after > 0 { self.query.after } else { 0 };
        let work = self.check_work(u64::from(context) * LONGEST_LINE as u64);
        if self.is_full() && (self.after == 0 || work.is_break()) {
            return ControlFlow::Break(Stopped::Matches);
        }
        work
    }

    /// Breaks if more than `extra` bytes over the limit were read.
    fn check_work(&self, extra: u64) -> ControlFlow<Stopped> {
        if self.scanned >= self.query.max_scanned.saturating_add(extra) {
            ControlFlow::Break(Stopped::Work)
        } else {
            ControlFlow::Continue(())
        }
    }
}

impl FoundLine {
    /// The line from index `from` on.
    fn from_index(line: &SplitLine, from: usize) -> Self {
        let mut range = line.range.clone();
        if from < line.known {
            range.start = range.start.min(line.mapped.range_of(from..line.known).start);
        }
        Self { range, text: without_line_ending(&line.mapped.bytes()[from..]).to_vec() }
    }
}
