//! Following the output of a process: every byte once, in order, at the reader's own pace.
//!
//! A follower reads the log by cursor and has one piece of it in hand, so a slow one costs no more
//! than a fast one, and what the quota drops under it is told as dropped.

mod place;
mod split;

use std::ops::Range;

use lastbyte_engine::{LogReader, Process, Snapshot, Streams};
use lastbyte_output::log::{self, ReadError, Run, Stamp, Stream};
use lastbyte_wire::{AttachQuery, Ending, Error, FollowQuery};

use super::refusal;
use crate::to_wire;

pub use place::Place;
pub use split::Content;
use split::{After, split};

/// A follower, somewhere in a log.
#[derive(Debug)]
pub struct Following {
    process: Process,
    reader: LogReader,
    place: Place,
    late: bool,
    cut: Cut,
    /// Empty until there is output.
    buffer: Vec<u8>,
}

/// Where the output may be cut into pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// Between characters and between streams, as far as it is text.
    Characters,
    /// Where the stream or the time changes, which is told with each piece.
    Stamps,
    Anywhere,
}

/// What comes next, and where the follower is then.
#[derive(Debug, Clone, PartialEq)]
pub struct Next {
    pub place: Place,
    pub news: News,
}

#[derive(Debug, Clone, PartialEq)]
pub enum News {
    Output(Piece),
    /// What a survivor wrote after the ending.
    Late(Piece),
    /// These bytes are gone.
    Dropped(Range<u64>),
    Ending(Box<Ending>),
}

/// Some bytes of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    pub range: Range<u64>,
    /// `None` where streams are not told apart.
    pub stream: Option<Stream>,
    /// When they came, in milliseconds of unix time; `None` unless asked for.
    pub at_ms: Option<u64>,
    pub content: Content,
}

/// Bytes of one stream, or of both where they are not told apart, and of one time, if that is told.
#[derive(Debug)]
struct Part {
    range: Range<u64>,
    stream: Option<Stream>,
    at_ms: Option<u64>,
}

/// What is read at once.
const PIECE: usize = 64 << 10;
/// What comes of one read at most: split streams may change with every byte.
const MOST_AT_ONCE: usize = 256;

impl Following {
    /// From where the query says, or behind an event that an earlier following gave.
    pub fn new(
        process: &Process,
        query: &FollowQuery,
        last_id: Option<&str>,
    ) -> Result<Self, Error> {
        let place = match last_id {
            Some(id) => Place::parse(id)?,
            None => Place::asked(query.from.unwrap_or(0), process.snapshot().extent.len),
        };
        let cut = match query.times {
            Some(true) => Cut::Stamps,
            Some(false) | None => Cut::Characters,
        };
        Self::at_place(process, place, query.late == Some(true), cut)
    }

    /// The bytes as they are, from where the query says.
    pub fn bytes(process: &Process, query: &AttachQuery) -> Result<Self, Error> {
        let place = Place::asked(query.from.unwrap_or(0), process.snapshot().extent.len);
        Self::at_place(process, place, query.late == Some(true), Cut::Anywhere)
    }

    fn at_place(process: &Process, place: Place, late: bool, cut: Cut) -> Result<Self, Error> {
        place.check(process.snapshot().extent.len)?;
        let (process, reader) = (process.clone(), process.reader());
        Ok(Self { process, reader, place, late, cut, buffer: Vec::new() })
    }

    pub fn cursor(&self) -> u64 {
        self.place.cursor
    }

    /// Whether all has been told that ever will be.
    pub fn is_over(&self) -> bool {
        self.over_at(&self.process.snapshot())
    }

    fn over_at(&self, snapshot: &Snapshot) -> bool {
        let all_told = !snapshot.log_open && self.place.cursor >= snapshot.extent.len;
        self.place.ended && (!self.late || all_told)
    }

    /// Waits for what comes next; nothing when all is told. Cancel-safe.
    pub async fn next(&mut self) -> Result<Vec<Next>, Error> {
        loop {
            let snapshot = self.process.snapshot();
            if self.over_at(&snapshot) {
                return Ok(Vec::new());
            }
            let next = self.at(&snapshot)?;
            if !next.is_empty() {
                return Ok(next);
            }
            let (seen, ended) = (snapshot.extent.len, self.place.ended);
            let news = |now: &Snapshot| {
                now.extent.len > seen
                    || now.log_open != snapshot.log_open
                    || !ended && now.ending().is_some()
            };
            self.process.wait_for(news).await;
        }
    }

    /// What is there at this snapshot. Reads no more than a copy from the page cache takes.
    fn at(&mut self, snapshot: &Snapshot) -> Result<Vec<Next>, Error> {
        let end = if self.place.ended { snapshot.extent.len } else { snapshot.output_len() };
        if self.place.cursor < end {
            return self.read(snapshot, end);
        }
        Ok(snapshot.ending().filter(|_| !self.place.ended).map_or_else(Vec::new, |ending| {
            self.place.ended = true;
            let ending = to_wire::ending(ending, &self.process.about().sandbox);
            vec![Next { place: self.place, news: News::Ending(Box::new(ending)) }]
        }))
    }

    fn read(&mut self, snapshot: &Snapshot, end: u64) -> Result<Vec<Next>, Error> {
        let from = self.place.cursor;
        let most = usize::try_from(end - from).unwrap_or(PIECE).min(PIECE);
        self.buffer.resize(PIECE, 0);
        let read = self.parts(snapshot, from, most);
        match read.map_err(|error| refusal::unreadable(&std::io::Error::other(error)))? {
            (log::Piece::Bytes(count), parts) => {
                let read_to = from + count as u64;
                // A read that is short of what is there ends where bytes are gone.
                let at_a_gap = count < most;
                let last = match at_a_gap || self.over_behind(read_to, snapshot) {
                    true => After::Nothing,
                    false => After::More,
                };
                Ok(self.tell(&parts, last))
            }
            (log::Piece::Dropped(gone), _) => Ok(vec![self.skip(gone.end.min(end))]),
            // The file is shorter than its log: somebody cut it.
            (log::Piece::End, _) => Ok(vec![self.skip(end)]),
        }
    }

    /// Reads, and says of which stream which bytes are.
    fn parts(
        &mut self,
        snapshot: &Snapshot,
        from: u64,
        most: usize,
    ) -> Result<(log::Piece, Vec<Part>), ReadError> {
        let into = &mut self.buffer[..most];
        match (self.cut, self.process.about().streams) {
            (Cut::Characters, Streams::Split) => {
                let (piece, runs) = self.reader.read_runs(snapshot, from, into)?;
                let part =
                    |run: Run| Part { range: run.range, stream: Some(run.stream), at_ms: None };
                Ok((piece, runs.into_iter().map(part).collect()))
            }
            (Cut::Stamps, streams) => {
                let (piece, stamps) = self.reader.read_stamps(snapshot, from, into)?;
                let parts = stamped(&stamps, from + count(&piece), streams);
                Ok((piece, parts))
            }
            (Cut::Anywhere, _) | (Cut::Characters, Streams::Merged | Streams::Pty(_)) => {
                let piece = self.reader.read(snapshot, from, into)?;
                let range = from..from + count(&piece);
                Ok((piece, vec![Part { range, stream: None, at_ms: None }]))
            }
        }
    }

    /// Whether no byte will ever follow this cursor in the same part of the log.
    fn over_behind(&self, cursor: u64, snapshot: &Snapshot) -> bool {
        match self.place.ended {
            true => !snapshot.log_open && cursor >= snapshot.extent.len,
            false => snapshot.ending().is_some_and(|ending| cursor >= ending.final_len),
        }
    }

    fn skip(&mut self, to: u64) -> Next {
        let range = self.place.cursor..to;
        self.place.cursor = to;
        Next { place: self.place, news: News::Dropped(range) }
    }

    /// What was read. The beginning of a character at the end of a part is held back only if that
    /// part may go on.
    fn tell(&mut self, parts: &[Part], last: After) -> Vec<Next> {
        let begin = self.place.cursor;
        let mut next = Vec::new();
        for (index, Part { range, stream, at_ms }) in parts.iter().enumerate().take(MOST_AT_ONCE) {
            let after = if index + 1 < parts.len() { After::Nothing } else { last };
            // Parts lie within the buffer, so their distance from its beginning is small.
            let at = |cursor: u64| (cursor - begin) as usize;
            let pieces = split(&self.buffer[at(range.start)..at(range.end)], self.cut, after);
            for (content, len) in pieces.into_iter().flatten() {
                let start = self.place.cursor;
                self.place.cursor += len as u64;
                let range = start..self.place.cursor;
                let piece = Piece { range, stream: *stream, at_ms: *at_ms, content };
                let news = match self.place.ended {
                    true => News::Late(piece),
                    false => News::Output(piece),
                };
                next.push(Next { place: self.place, news });
            }
        }
        next
    }
}

/// The parts that begin with these stamps, the last of which ends at `end`.
fn stamped(stamps: &[Stamp], end: u64, streams: Streams) -> Vec<Part> {
    let ends = stamps.iter().skip(1).map(|stamp| stamp.offset).chain([end]);
    let part = |(stamp, end): (&Stamp, u64)| Part {
        range: stamp.offset..end,
        stream: match streams {
            Streams::Split => Some(stamp.stream),
            Streams::Merged | Streams::Pty(_) => None,
        },
        at_ms: Some(stamp.at_ms),
    };
    stamps.iter().zip(ends).map(part).collect()
}

fn count(piece: &log::Piece) -> u64 {
    match piece {
        log::Piece::Bytes(count) => *count as u64,
        log::Piece::Dropped(_) | log::Piece::End => 0,
    }
}
