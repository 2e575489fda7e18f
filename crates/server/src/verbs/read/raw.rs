//! The bytes themselves: one range without a gap, sent while it is read.

use std::io;
use std::ops::Range;

use bytes::Bytes;
use futures_util::{Stream, stream};
use lastbyte_engine::{LogSource, Process, Snapshot};
use lastbyte_output::views::raw::{self, Segment};
use lastbyte_output::views::{Read, Source};
use lastbyte_wire::{Content, Error};
use tokio::task::spawn_blocking;

use super::{AT_ONCE, ReadRequest, source};
use crate::App;
use crate::verbs::{long_read, refusal};

/// Bytes and what they are bytes of.
#[derive(Debug)]
pub struct RawOutput {
    pub snapshot: Snapshot,
    pub from: u64,
    pub next: u64,
    pub body: RawBody,
}

/// Bytes that are in hand; and, of a log that is closed and so loses nothing any more, the rest, in
/// pieces that are read when they are wanted.
#[derive(Debug)]
pub struct RawBody {
    first: Bytes,
    rest: Option<Rest>,
    /// How many bytes it has.
    pub len: u64,
}

/// What is left to read, and from where.
type Rest = (LogSource, Range<u64>);

/// What is read at once, and so what a client that does not read costs.
const CHUNK_BYTES: u64 = 64 << 10;
/// What is promised of a log that may still drop: no more than can be in hand.
const OPEN_LOG_BYTES: u64 = 256 << 10;

pub(super) async fn read(
    app: &App,
    process: &Process,
    mut snapshot: Snapshot,
    asked: &ReadRequest,
) -> Result<RawOutput, Error> {
    loop {
        let source = source(process, &snapshot, asked.stream, asked.late);
        let (from, most) = (asked.cursor(source.end()), asked.budget());
        let read = if asked.stream.is_some() {
            let bytes = asked.reads(from..source.end());
            let read = move |source: &dyn Source| filtered(source, from, most).map(Some);
            long_read::in_turn(app, process, (source, bytes), read).await?
        } else if snapshot.log_open {
            let most = OPEN_LOG_BYTES.min(most as u64);
            let read = move || unfiltered(source, from, most, most);
            refusal::read_blocking(process, "reading the output", read).await?
        } else {
            let read = unfiltered(source, from, most as u64, AT_ONCE as u64);
            read.map_err(|error| refusal::unreadable(process, &error))?
        };
        match read {
            Some((range, body)) => {
                return Ok(RawOutput { snapshot, from: range.start, next: range.end, body });
            }
            // What lay there was dropped between the snapshot and the read.
            None => snapshot = process.snapshot(),
        }
    }
}

/// As part of an answer in JSON.
pub(super) fn content(source: &dyn Source, from: u64, most: usize) -> io::Result<(Content, u64)> {
    let (range, body) = filtered(source, from, most)?;
    Ok((Content::Raw { base64: base64_simd::STANDARD.encode_to_string(&body.first) }, range.end))
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

/// Reads up to `now` bytes; the rest is read when it is wanted. What is dropped meanwhile ends it;
/// `None` if that is the first byte.
fn unfiltered(
    source: LogSource,
    from: u64,
    most: u64,
    now: u64,
) -> io::Result<Option<(Range<u64>, RawBody)>> {
    let Range { start, mut end } = available(&source, from, most);
    let mut first = vec![0; (end - start).min(now) as usize];
    let mut count = 0;
    while count < first.len() {
        match source.read_at(start + count as u64, &mut first[count..])? {
            Read::Bytes(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Read::Bytes(more) => count += more,
            Read::Dropped(_) | Read::Other { .. } if count == 0 => return Ok(None),
            Read::Dropped(_) | Read::Other { .. } => {
                first.truncate(count);
                end = start + count as u64;
            }
        }
    }
    let left = start + count as u64..end;
    let rest = (!left.is_empty()).then_some((source, left));
    let body = RawBody { first: first.into(), rest, len: end - start };
    Ok(Some((start..end, body)))
}

/// One stream's bytes, up to the next dropped range; `next` lies behind the other's bytes.
fn filtered(source: &dyn Source, from: u64, most: usize) -> io::Result<(Range<u64>, RawBody)> {
    let raw = raw::since(source, from, most)?;
    let (mut start, mut end, mut first) = (from, raw.next, Vec::new());
    for segment in raw.segments {
        match segment {
            Segment::Dropped(gone) => start = gone.end,
            Segment::Bytes { range, bytes } => {
                (end, first) = (range.end, bytes);
                break;
            }
        }
    }
    let body = RawBody { len: first.len() as u64, first: first.into(), rest: None };
    Ok((start..end.max(start), body))
}

impl RawBody {
    /// What is in hand, and the rest, if there is one.
    pub fn into_parts(self) -> (Bytes, Option<impl Stream<Item = io::Result<Bytes>>>) {
        let rest = self.rest.map(|rest| {
            stream::try_unfold(rest, async |rest| {
                if rest.1.is_empty() {
                    return Ok(None);
                }
                let chunk = spawn_blocking(move || read_chunk(rest)).await;
                chunk.map_err(|_| io::Error::other("internal error while reading the output"))?
            })
        });
        (self.first, rest)
    }
}

/// The next bytes, and what is left.
fn read_chunk((source, left): Rest) -> io::Result<Option<(Bytes, Rest)>> {
    let mut chunk = vec![0; (left.end - left.start).min(CHUNK_BYTES) as usize];
    match source.read_at(left.start, &mut chunk)? {
        Read::Bytes(0) => Err(io::ErrorKind::UnexpectedEof.into()),
        Read::Bytes(count) => {
            chunk.truncate(count);
            Ok(Some((chunk.into(), (source, left.start + count as u64..left.end))))
        }
        Read::Dropped(_) | Read::Other { .. } => {
            Err(io::Error::other("the output was dropped while it was being sent"))
        }
    }
}
