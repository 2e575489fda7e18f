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
    before: VecDeque<FoundLine>,
    /// How many more lines of context the last match gets.
    after: u8,
    /// If the line continues, the index in its next part where the last hit ended.
    hit_end: Option<usize>,
    /// Whether a text of the current line matched that was overwritten.
    overwritten_matched: bool,
    /// `None` after a dropped range.
    number: Option<u64>,
    /// How much text has been returned.
    given: usize,
    scanned: u64,
    next: u64,
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
            given: 0,
            scanned: 0,
            next: query.from,
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
        // The last match may be on the last line: then nothing is left to search.
        let at_end = stopped == Stopped::Matches && self.next >= source.end();
        let stopped = if at_end { Stopped::End } else { stopped };
        Ok(Found { matches: self.matches, dropped: self.dropped, next: self.next, stopped })
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
                self.number = None;
                self.check_limits()?;
                self.dropped.push(range);
            }
        }
        ControlFlow::Continue(())
    }

    fn take_end(&mut self, end: u64) -> Stopped {
        let (mut next, found) = (end, self.matches.len());
        while let Some(line) = self.texts.end_line() {
            let again = self.resume_offset(&line);
            let flow = self.take_line(&line);
            if let ControlFlow::Break(stopped @ (Stopped::Matches | Stopped::Bytes)) = flow {
                return stopped;
            }
            next = again;
        }
        self.stop_at_end(if self.matches.len() > found { end } else { next })
    }

    fn stop_at_end(&mut self, next: u64) -> Stopped {
        if self.is_full() {
            return Stopped::Matches;
        }
        self.next = next;
        Stopped::End
    }

    fn take_line(&mut self, line: &SplitLine) -> ControlFlow<Stopped> {
        self.scanned += line.scanned as u64;
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
            self.next = line.next(hit_end);
            let continued = hit_end.filter(|_| line.kind == TextKind::Part);
            self.hit_end = continued.and_then(|end| end.checked_sub(line.resume));
        }
        if line.kind == TextKind::Overwritten && !self.is_full() {
            // The line is searched to its end, unless it has none.
            return self.check_work(LONGEST_LINE as u64);
        }
        if line.kind == TextKind::Whole {
            self.number = self.number.map(|number| number + 1);
            self.overwritten_matched = false;
        }
        self.check_limits()
    }

    /// The offset from which to search a line again without finding the same hits.
    fn resume_offset(&self, line: &SplitLine) -> u64 {
        match self.hit_end {
            Some(end) => line.mapped.offset(end),
            None if self.overwritten_matched => self.next,
            None if line.known > 0 => line.mapped.offset(0),
            None => line.range.start,
        }
    }

    /// The hits not returned with the part before: those that end after its bytes.
    fn hits(&self, line: &SplitLine) -> Vec<Range<usize>> {
        // One of the texts that a line showed is enough, and its last one.
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
            self.next = again;
            return ControlFlow::Break(Stopped::Bytes);
        }
        let mut size =
            line.text.len() + self.before.iter().map(|line| line.text.len()).sum::<usize>();
        while size > budget
            && let Some(oldest) = self.before.pop_front()
        {
            size -= oldest.text.len();
        }
        self.given += size;
        self.after = self.query.after;
        let before = self.before.drain(..).collect();
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
            self.before.push_back(line);
        }
    }

    fn is_full(&self) -> bool {
        self.matches.len() >= self.query.max_matches
    }

    fn check_limits(&self) -> ControlFlow<Stopped> {
        let work = self.check_work(0);
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
