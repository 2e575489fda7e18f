//! The search itself: a line at a time, with what has to be remembered between lines.

use std::{
    collections::VecDeque,
    io,
    ops::{ControlFlow, Range},
};

use super::splitter::{Splitter, text_of};
use super::{Found, FoundLine, Hit, Match, Query, Stopped};
use crate::views::{
    Source,
    piece::Piece,
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
        self.check_limits()?;
        self.dropped.push(range);
        ControlFlow::Continue(())
    }

    fn take_end(&mut self, end: u64) -> Stopped {
        let Some(line) = self.splitter.end_line() else {
            return self.stop_at_end(end);
        };
        let found = self.matches.len();
        match self.take_line(&line) {
            ControlFlow::Break(stopped @ (Stopped::Matches | Stopped::Bytes)) => stopped,
            ControlFlow::Break(Stopped::Work | Stopped::End) | ControlFlow::Continue(()) => {
                let matched = self.matches.len() > found;
                self.stop_at_end(if matched { end } else { line.range().start })
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

    fn take_line(&mut self, line: &Piece) -> ControlFlow<Stopped> {
        self.scanned += line.len() as u64;
        if self.is_full() {
            self.add_context(line);
        } else {
            self.next = line.range().end;
            let hits = self.hits(line);
            if hits.is_empty() {
                self.add_context(line);
            } else {
                self.add_match(line, hits)?;
            }
        }
        self.number += 1;
        self.check_limits()
    }

    fn hits(&self, line: &Piece) -> Vec<Hit> {
        let all = self.query.regex.find_iter(text_of(line.bytes()));
        let hit = |text: Range<usize>| Hit { range: line.places(text.clone()), text };
        all.take(MOST_HITS).map(|found| hit(found.range())).collect()
    }

    fn add_match(&mut self, line: &Piece, hits: Vec<Hit>) -> ControlFlow<Stopped> {
        let line = FoundLine::of(line);
        let room = self.query.max_bytes.saturating_sub(self.given);
        if line.text.len() > room && !self.matches.is_empty() {
            self.next = line.range.start;
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

    fn add_context(&mut self, line: &Piece) {
        if self.after == 0 && self.query.before == 0 {
            return;
        }
        let line = FoundLine::of(line);
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
    fn of(line: &Piece) -> Self {
        Self { range: line.range(), text: text_of(line.bytes()).to_vec() }
    }
}

fn total(lines: &VecDeque<FoundLine>) -> usize {
    lines.iter().map(|line| line.text.len()).sum()
}
