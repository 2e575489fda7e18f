//! The search itself: a line at a time, with what has to be remembered between lines.

use std::{
    collections::VecDeque,
    io, iter,
    ops::{ControlFlow, Range},
};

use super::splitter::{Line, Splitter, text_of};
use super::{Found, FoundLine, Hit, Match, Query, Stopped};
use crate::views::{
    Source,
    walk::{Chunk, Step, Walk},
};

const MOST_HITS: usize = 64;

pub(super) struct Searcher<'q> {
    query: &'q Query,
    splitter: Splitter,
    matches: Vec<Match>,
    dropped: Vec<Range<u64>>,
    /// Lines that may turn out to be context before a match.
    before: VecDeque<FoundLine>,
    /// How many lines of context the last match still gets.
    after: u8,
    /// Where in the next part of a broken line the last hit ended.
    hit_end: Option<usize>,
    number: u64,
    given: usize,
    scanned: u64,
    next: u64,
}

impl<'q> Searcher<'q> {
    pub(super) fn new(query: &'q Query) -> Self {
        Self {
            query,
            splitter: Splitter::default(),
            matches: Vec::new(),
            dropped: Vec::new(),
            before: VecDeque::new(),
            after: 0,
            hit_end: None,
            number: 0,
            given: 0,
            scanned: 0,
            next: query.from,
        }
    }

    pub(super) fn search(mut self, source: &dyn Source) -> io::Result<Found> {
        let mut walk = Walk::new(source, self.query.from..source.end());
        let mut going = match self.is_full() {
            true => ControlFlow::Break(Stopped::Matches),
            false => ControlFlow::Continue(()),
        };
        while going.is_continue()
            && let Some(step) = walk.next()?
        {
            going = match step {
                Step::Bytes(chunk) => self.take_chunk(chunk),
                Step::Dropped(range) => self.take_dropped(range),
            };
        }
        let stopped = match going {
            ControlFlow::Break(stopped) => stopped,
            ControlFlow::Continue(()) => self.take_end(walk.at()),
        };
        Ok(Found { matches: self.matches, dropped: self.dropped, next: self.next, stopped })
    }

    fn take_chunk(&mut self, mut chunk: Chunk<'_>) -> ControlFlow<Stopped> {
        while let Some(line) = self.splitter.feed(&mut chunk) {
            self.take_line(&line)?;
        }
        ControlFlow::Continue(())
    }

    fn take_dropped(&mut self, range: Range<u64>) -> ControlFlow<Stopped> {
        if let Some(line) = self.splitter.end_line() {
            self.take_line(&line)?;
        }
        self.before.clear();
        self.after = 0;
        // What follows is no part of the line before, however that ended.
        self.hit_end = None;
        self.check_limits()?;
        self.dropped.push(range);
        ControlFlow::Continue(())
    }

    fn take_end(&mut self, end: u64) -> Stopped {
        let Some(line) = self.splitter.end_line() else {
            return self.stop_at_end(end);
        };
        let found = self.matches.len();
        let again = self.first_place(&line);
        match self.take_line(&line) {
            ControlFlow::Break(stopped @ (Stopped::Matches | Stopped::Bytes)) => stopped,
            ControlFlow::Break(Stopped::Work | Stopped::End) | ControlFlow::Continue(()) => {
                let matched = self.matches.len() > found;
                self.stop_at_end(if matched { end } else { again })
            }
        }
    }

    fn stop_at_end(&mut self, next: u64) -> Stopped {
        if self.is_full() {
            return Stopped::Matches;
        }
        self.next = next;
        Stopped::End
    }

    fn take_line(&mut self, line: &Line) -> ControlFlow<Stopped> {
        self.scanned += line.fresh() as u64;
        if self.is_full() {
            self.add_context(line);
        } else {
            let hits = self.hits(line);
            if hits.is_empty() {
                self.add_context(line);
            } else {
                self.add_match(line, &hits)?;
            }
            let hit_end = hits.last().map(|hit| hit.end);
            // Whoever goes on in a broken line gets the end of it again, but for what was a hit.
            self.next = line.piece.place(line.resume.max(hit_end.unwrap_or(0)));
            self.hit_end = hit_end.and_then(|end| end.checked_sub(line.resume));
        }
        self.number += 1;
        self.check_limits()
    }

    /// From where on a line has to be looked at to find in it what has not been found.
    fn first_place(&self, line: &Line) -> u64 {
        line.piece.place(self.hit_end.unwrap_or(0))
    }

    /// The hits that were not given with the part before: those that reach past what is known.
    fn hits(&self, line: &Line) -> Vec<Range<usize>> {
        let (text, mut last_end) = (line.text(), self.hit_end);
        let mut at = last_end.unwrap_or(0);
        let all = iter::from_fn(|| {
            while at <= text.len() {
                let found = self.query.regex.find_at(text, at)?;
                at = found.end();
                // As `find_iter` has it, which cannot begin in the middle of a text.
                if !found.is_empty() || last_end != Some(at) {
                    last_end = Some(at);
                    return Some(found.range());
                }
                at += 1;
            }
            None
        });
        all.filter(|hit| hit.end >= line.known).take(MOST_HITS).collect()
    }

    fn add_match(&mut self, line: &Line, hits: &[Range<usize>]) -> ControlFlow<Stopped> {
        let again = self.first_place(line);
        // Of what was known only that in which a hit begins is given again.
        let from = hits.first().map_or(line.known, |first| first.start.min(line.known));
        let hit = |found: &Range<usize>| Hit {
            text: found.start - from..found.end - from,
            range: line.piece.places(found.clone()),
        };
        let hits = hits.iter().map(hit).collect();
        let line = FoundLine::of(line, from);
        let room = self.query.max_bytes.saturating_sub(self.given);
        if line.text.len() > room && !self.matches.is_empty() {
            self.next = again;
            return ControlFlow::Break(Stopped::Bytes);
        }
        let mut size = line.text.len() + total(&self.before);
        while size > room
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

    fn add_context(&mut self, line: &Line) {
        if self.after == 0 && self.query.before == 0 {
            return;
        }
        let line = FoundLine::of(line, line.known);
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
        if self.is_full() && self.after == 0 {
            return ControlFlow::Break(Stopped::Matches);
        }
        if self.scanned >= self.query.max_scanned {
            let full = self.is_full();
            return ControlFlow::Break(if full { Stopped::Matches } else { Stopped::Work });
        }
        ControlFlow::Continue(())
    }
}

impl FoundLine {
    /// What a line has from an index on.
    fn of(line: &Line, from: usize) -> Self {
        let range = line.piece.places(from..line.piece.len());
        Self { range, text: text_of(&line.piece.bytes()[from..]).to_vec() }
    }
}

fn total(lines: &VecDeque<FoundLine>) -> usize {
    lines.iter().map(|line| line.text.len()).sum()
}
