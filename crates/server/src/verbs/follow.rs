//! Following the output of a process: every byte once, in order, at the reader's own pace.
//!
//! A follower reads the log by cursor and keeps one piece of it in memory, so a slow reader costs no
//! more than a fast one; bytes that the quota dropped meanwhile are reported as dropped. Every door
//! that passes on output as it comes does so with a [`Follower`].

mod place;

use std::ops::Range;
use std::sync::Arc;

use lastbyte_engine::{Ending, LogReader, Process, Snapshot, Streams};
use lastbyte_output::decode::unfinished;
use lastbyte_output::log::{Piece, ReadError, Run, Stamp, Stream};
use lastbyte_wire::{AttachQuery, Error, FollowQuery};

use super::refusal;

pub use place::FollowPlace;

/// Reads one log step by step.
#[derive(Debug)]
pub struct Follower {
    pub process: Process,
    reader: LogReader,
    place: FollowPlace,
    /// Whether it goes on after the ending, with what survivors of the process write.
    late: bool,
    cut: Cut,
    /// The bytes of the last read. Freed while waiting, which most followers do most of the time.
    buffer: Vec<u8>,
    /// Where in the log the buffer begins.
    buffer_start: u64,
}

/// Where the output may be cut into parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// Between characters and between streams, as far as it is text.
    Characters,
    /// Where the stream or the time changes; each part has its time.
    Stamps,
    /// Where the stream changes. Every part has a stream, also on a terminal.
    Streams,
    Anywhere,
}

/// What comes next.
#[derive(Debug)]
pub enum Step {
    /// [`Follower::bytes`] has the bytes of these parts until the next step.
    Output(Vec<Part>),
    /// These bytes are gone.
    Dropped(Range<u64>),
    Ending(Arc<Ending>),
}

/// Some bytes of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    pub range: Range<u64>,
    /// `None` where streams are not told apart.
    pub stream: Option<Stream>,
    /// When they came, in milliseconds of unix time; `None` unless asked for.
    pub at_ms: Option<u64>,
}

/// At most this many parts come of one read: each becomes an event, and split streams may change
/// with every byte.
const MOST_PARTS: usize = 256;

impl Follower {
    /// From where the query says, or after an event that an earlier follower gave.
    pub fn new(
        process: &Process,
        query: &FollowQuery,
        last_id: Option<&str>,
    ) -> Result<Self, Error> {
        let total = process.snapshot().extent.len;
        let place = match last_id {
            Some(id) => FollowPlace::parse(id)?,
            None => FollowPlace::from_offset(query.from.unwrap_or(0), total),
        };
        place.check(total)?;
        let cut = if query.times == Some(true) { Cut::Stamps } else { Cut::Characters };
        let late = query.late == Some(true);
        Ok(Self { place, late, cut, ..Self::from_start(process) })
    }

    /// The bytes as they are, from where the query says.
    pub fn attached(process: &Process, query: &AttachQuery) -> Result<Self, Error> {
        let query = FollowQuery { from: query.from, late: query.late, times: None };
        Ok(Self { cut: Cut::Anywhere, ..Self::new(process, &query, None)? })
    }

    /// Everything up to the ending, with the stream of each byte.
    pub fn from_start(process: &Process) -> Self {
        Self {
            process: process.clone(),
            reader: process.reader(),
            place: FollowPlace { cursor: 0, ended: false },
            late: false,
            cut: Cut::Streams,
            buffer: Vec::new(),
            buffer_start: 0,
        }
    }

    /// As [`Follower::from_start`], and what survivors write after the ending.
    pub fn whole(process: &Process) -> Self {
        Self { late: true, ..Self::from_start(process) }
    }

    /// After the last step. Output is late if the ending came before it.
    pub fn place(&self) -> FollowPlace {
        self.place
    }

    /// The bytes of a range within the parts of the last step.
    pub fn bytes(&self, range: &Range<u64>) -> &[u8] {
        // They lie within the buffer, so their distance from its beginning is small.
        let at = |cursor: u64| (cursor - self.buffer_start) as usize;
        &self.buffer[at(range.start)..at(range.end)]
    }

    /// Whether there will be no further step.
    pub fn is_over(&self) -> bool {
        self.over_at(&self.process.snapshot())
    }

    fn over_at(&self, snapshot: &Snapshot) -> bool {
        self.place.ended && (!self.late || self.nothing_follows(self.place.cursor, snapshot))
    }

    /// Waits for the next step; `None` when it is over. Cancel-safe.
    pub async fn next(&mut self) -> Result<Option<Step>, Error> {
        loop {
            let snapshot = self.process.snapshot();
            if self.over_at(&snapshot) {
                return Ok(None);
            }
            if let Some(step) = self.step(&snapshot)? {
                return Ok(Some(step));
            }
            self.buffer = Vec::new();
            let (seen, ended) = (snapshot.extent.len, self.place.ended);
            let news = |now: &Snapshot| {
                now.extent.len > seen
                    || now.log_open != snapshot.log_open
                    || !ended && now.ending().is_some()
            };
            self.process.wait_for(news).await;
        }
    }

    /// Skips all output so far that was not read, to go on after an error.
    pub fn skip_unread(&mut self) -> Range<u64> {
        self.skip(self.end_of(&self.process.snapshot()))
    }

    /// What this snapshot has. Takes no longer than a copy from the page cache.
    fn step(&mut self, snapshot: &Snapshot) -> Result<Option<Step>, Error> {
        let end = self.end_of(snapshot);
        if self.place.cursor < end {
            let read = self.read(snapshot, end);
            return read.map_err(|error| refusal::unreadable(&self.process, &error));
        }
        let ending = snapshot.ending().filter(|_| !self.place.ended);
        self.place.ended |= ending.is_some();
        Ok(ending.map(|ending| Step::Ending(Arc::clone(ending))))
    }

    /// How far it may read: late output comes after the ending.
    fn end_of(&self, snapshot: &Snapshot) -> u64 {
        if self.place.ended { snapshot.extent.len } else { snapshot.output_len() }
    }

    fn read(&mut self, snapshot: &Snapshot, end: u64) -> Result<Option<Step>, ReadError> {
        let from = self.place.cursor;
        // What a follower costs while its client does not read. As JSON it is up to six times as much.
        let at_once = if self.cut == Cut::Streams { 64 << 10 } else { 16 << 10 };
        let most = usize::try_from(end - from).unwrap_or(usize::MAX).min(at_once);
        self.buffer.resize(most, 0);
        self.buffer_start = from;
        let (piece, mut parts) = self.read_parts(snapshot, from)?;
        let skipped_to = match piece {
            Piece::Bytes(count) => {
                // A read shorter than what is there ends where bytes were dropped.
                let at_gap = count < most;
                let is_last = at_gap || self.nothing_follows(from + count as u64, snapshot);
                self.trim(&mut parts, is_last);
                let Some(last) = parts.last() else { return Ok(None) };
                self.place.cursor = last.range.end;
                return Ok(Some(Step::Output(parts)));
            }
            Piece::Dropped(gone) => gone.end.min(end),
            // The file is shorter than its log: it was truncated by somebody else.
            Piece::End => end,
        };
        Ok(Some(Step::Dropped(self.skip(skipped_to))))
    }

    /// Reads into the buffer, with the stream or time of each part where they are asked for.
    fn read_parts(
        &mut self,
        snapshot: &Snapshot,
        from: u64,
    ) -> Result<(Piece, Vec<Part>), ReadError> {
        let into = &mut self.buffer;
        match (self.cut, self.process.spec().streams) {
            (Cut::Streams, _) | (Cut::Characters, Streams::Split) => {
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

    /// Whether no byte will ever follow this cursor, before the ending or after it.
    fn nothing_follows(&self, cursor: u64, snapshot: &Snapshot) -> bool {
        if self.place.ended {
            !snapshot.log_open && cursor >= snapshot.extent.len
        } else {
            snapshot.ending().is_some_and(|ending| cursor >= ending.final_len)
        }
    }

    /// Leaves for a later read what should not be passed on yet: the beginning of a character whose
    /// rest may still come. Only where characters are kept whole: bytes that came at different times
    /// are told apart even within one.
    fn trim(&self, parts: &mut Vec<Part>, is_last: bool) {
        if parts.len() > MOST_PARTS && self.cut != Cut::Streams {
            parts.truncate(MOST_PARTS);
        } else if let Some(last) = parts.last_mut()
            && self.cut == Cut::Characters
            && !is_last
        {
            last.range.end -= unfinished(self.bytes(&last.range)) as u64;
            parts.pop_if(|last| last.range.is_empty());
        }
    }

    fn skip(&mut self, to: u64) -> Range<u64> {
        let range = self.place.cursor..to;
        self.place.cursor = to;
        range
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

fn count(piece: &Piece) -> u64 {
    match piece {
        Piece::Bytes(count) => *count as u64,
        Piece::Dropped(_) | Piece::End => 0,
    }
}
