//! The bytes themselves: one range without a gap, sent while it is read.

use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;
use lastbyte_engine::{LogSource, Process, Snapshot};
use lastbyte_output::views::raw::{self, Segment};
use lastbyte_output::views::{Read, Source};
use lastbyte_wire::{Content, Error};
use tokio::task::{JoinHandle, spawn_blocking};

use super::{AT_ONCE, ReadRequest, source};
use crate::verbs::refusal;

/// Bytes and what they are bytes of.
#[derive(Debug)]
pub struct RawOutput {
    pub snapshot: Snapshot,
    pub from: u64,
    pub next: u64,
    pub body: RawBody,
}

/// Bytes that are in hand; or, of a log that is closed and so loses nothing any more, those from a
/// cursor on, in pieces that are read when they are wanted.
#[derive(Debug)]
pub struct RawBody {
    first: Option<Bytes>,
    rest: Option<Rest>,
    len: u64,
}

#[derive(Debug)]
enum Rest {
    Ready(Box<LogSource>, Range<u64>),
    Reading(JoinHandle<io::Result<ReadChunk>>),
}

/// What was read, and what is left to read from where.
type ReadChunk = (Bytes, Box<LogSource>, Range<u64>);

/// What is read at once, and so what a client that does not read costs.
const CHUNK_BYTES: usize = 64 << 10;
/// What is promised of a log that may still drop: no more than can be in hand.
const OPEN_LOG_BYTES: u64 = 256 << 10;

pub(super) async fn read(
    process: &Process,
    snapshot: &Snapshot,
    asked: &ReadRequest,
) -> Result<RawOutput, Error> {
    let mut snapshot = snapshot.clone();
    loop {
        let source = source(process, &snapshot, asked.stream, asked.late);
        let from = asked.cursor(source.end());
        let most = asked.budget();
        let read = match asked.stream {
            None if snapshot.log_open => {
                let most = OPEN_LOG_BYTES.min(most as u64);
                let read_now = spawn_blocking(move || read_now(&source, from, most));
                read_now.await.map_err(|_| refusal::broken("reading the output"))?
            }
            None => whole(source, from, most as u64),
            Some(_) => {
                let filtered = spawn_blocking(move || filtered(&source, from, most));
                filtered.await.map_err(|_| refusal::broken("reading the output"))?.map(Some)
            }
        };
        match read.map_err(|error| refusal::unreadable(&error))? {
            Some((range, body)) => {
                return Ok(RawOutput { snapshot, from: range.start, next: range.end, body });
            }
            // What lay there was dropped between the snapshot and the read.
            None => snapshot = process.snapshot(),
        }
    }
}

/// As part of an answer in JSON.
pub(super) fn content(source: &LogSource, from: u64, most: usize) -> io::Result<(Content, u64)> {
    let (range, body) = filtered(source, from, most)?;
    let bytes = body.first.unwrap_or_default();
    Ok((Content::Raw { base64: base64_simd::STANDARD.encode_to_string(&bytes) }, range.end))
}

/// From the first byte at or after `from` that is there, up to the next that is not.
fn available(source: &LogSource, from: u64, most: u64) -> Range<u64> {
    let mut from = from;
    let mut end = source.end();
    for gone in source.dropped() {
        if gone.start > from {
            end = end.min(gone.start);
            break;
        }
        from = from.max(gone.end);
    }
    from..from.saturating_add(most).min(end).max(from)
}

/// Reads all that it answers with: what is dropped meanwhile ends it, and is asked for no more.
fn read_now(source: &LogSource, from: u64, most: u64) -> io::Result<Option<(Range<u64>, RawBody)>> {
    let range = available(source, from, most);
    let mut bytes = vec![0; (range.end - range.start) as usize];
    let mut count = 0;
    while count < bytes.len() {
        match source.read_at(range.start + count as u64, &mut bytes[count..])? {
            Read::Bytes(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Read::Bytes(more) => count += more,
            Read::Dropped(_) | Read::Other { .. } if count == 0 => return Ok(None),
            Read::Dropped(_) | Read::Other { .. } => break,
        }
    }
    bytes.truncate(count);
    let len = count as u64;
    let body = RawBody { first: Some(bytes.into()), rest: None, len };
    Ok(Some((range.start..range.start + len, body)))
}

/// Reads the beginning, and the rest when it is wanted.
fn whole(source: LogSource, from: u64, most: u64) -> io::Result<Option<(Range<u64>, RawBody)>> {
    let Range { start: from, end: next } = available(&source, from, most);
    let mut first = vec![0; (next - from).min(AT_ONCE as u64) as usize];
    let count = match source.read_at(from, &mut first)? {
        Read::Bytes(count) => count,
        Read::Dropped(_) => return Ok(None),
        Read::Other { .. } => 0,
    };
    if count == 0 && next > from {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    first.truncate(count);
    let left = from + count as u64..next;
    let rest = (!left.is_empty()).then_some(Rest::Ready(Box::new(source), left));
    let body = RawBody { first: Some(first.into()), rest, len: next - from };
    Ok(Some((from..next, body)))
}

/// One stream's bytes, up to the next dropped range; `next` lies behind the other's bytes.
fn filtered(source: &LogSource, from: u64, most: usize) -> io::Result<(Range<u64>, RawBody)> {
    let raw = raw::since(source, from, most)?;
    let mut start = from;
    for segment in raw.segments {
        match segment {
            Segment::Dropped(gone) => start = gone.end,
            Segment::Bytes { range, bytes } => {
                let len = bytes.len() as u64;
                let body = RawBody { first: Some(bytes.into()), rest: None, len };
                return Ok((start..range.end.max(start), body));
            }
        }
    }
    Ok((start..raw.next.max(start), RawBody { first: None, rest: None, len: 0 }))
}

impl RawBody {
    /// All of it, if it is in hand.
    pub fn into_whole(self) -> Result<Bytes, Self> {
        match self.rest {
            None => Ok(self.first.unwrap_or_default()),
            Some(_) => Err(self),
        }
    }

    /// How many bytes it has.
    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Rest {
    fn read(source: Box<LogSource>, range: Range<u64>) -> Self {
        Self::Reading(spawn_blocking(move || {
            let mut chunk = vec![0; (range.end - range.start).min(CHUNK_BYTES as u64) as usize];
            match source.read_at(range.start, &mut chunk)? {
                Read::Bytes(0) => Err(io::ErrorKind::UnexpectedEof.into()),
                Read::Bytes(count) => {
                    chunk.truncate(count);
                    Ok((chunk.into(), source, range.start + count as u64..range.end))
                }
                Read::Dropped(_) | Read::Other { .. } => {
                    Err(io::Error::other("the output was dropped while it was being sent"))
                }
            }
        }))
    }
}

impl Stream for RawBody {
    type Item = io::Result<Bytes>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let body = self.get_mut();
        if let Some(first) = body.first.take().filter(|first| !first.is_empty()) {
            return Poll::Ready(Some(Ok(first)));
        }
        loop {
            match body.rest.take() {
                None => return Poll::Ready(None),
                Some(Rest::Ready(source, range)) => body.rest = Some(Rest::read(source, range)),
                Some(Rest::Reading(mut reading)) => {
                    let Poll::Ready(read) = Pin::new(&mut reading).poll(context) else {
                        body.rest = Some(Rest::Reading(reading));
                        return Poll::Pending;
                    };
                    let read = read.unwrap_or_else(|_| {
                        Err(io::Error::other("internal error while reading the output"))
                    });
                    return Poll::Ready(Some(read.map(|(chunk, source, left)| {
                        body.rest = (!left.is_empty()).then_some(Rest::Ready(source, left));
                        chunk
                    })));
                }
            }
        }
    }
}
