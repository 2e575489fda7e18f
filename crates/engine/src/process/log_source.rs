//! A log as the views see it: up to one snapshot, all of it or one stream.

use std::io;
use std::ops::Range;

use lastbyte_output::log::{Dropped, Piece, Stream};
use lastbyte_output::views::{Read, Source};

use crate::process::LogReader;
use crate::process::snapshot::Snapshot;

/// All views of it show the same moment, whatever is written meanwhile.
#[derive(Debug)]
pub struct LogSource {
    reader: LogReader,
    snapshot: Snapshot,
    end: u64,
    dropped: Dropped,
    /// `None` for both.
    stream: Option<Stream>,
}

impl LogSource {
    /// The output at this snapshot, without late output; constant once there is an ending.
    pub fn output(reader: LogReader, snapshot: Snapshot) -> Self {
        let end = snapshot.output_len();
        Self::up_to(end, reader, snapshot)
    }

    /// Includes late output.
    pub fn all(reader: LogReader, snapshot: Snapshot) -> Self {
        let end = snapshot.extent.len;
        Self::up_to(end, reader, snapshot)
    }

    fn up_to(end: u64, reader: LogReader, snapshot: Snapshot) -> Self {
        let dropped = snapshot.extent.dropped.below(end);
        Self { reader, snapshot, end, dropped, stream: None }
    }

    /// Only the bytes of this stream, at their offsets in the log.
    pub fn only(self, stream: Stream) -> Self {
        Self { stream: Some(stream), ..self }
    }

    fn read_stream(&self, wanted: Stream, at: u64, into: &mut [u8]) -> io::Result<Read> {
        let (piece, runs) =
            self.reader.read_runs(&self.snapshot, at, into).map_err(io::Error::other)?;
        let Some(run) = runs.first() else { return Ok(answer(piece, at)) };
        Ok(if run.stream == wanted {
            // The buffer may continue with bytes of the other stream, which are not counted.
            Read::Bytes((run.range.end - at) as usize)
        } else {
            Read::Other { until: run.range.end }
        })
    }
}

impl Source for LogSource {
    fn end(&self) -> u64 {
        self.end
    }

    fn dropped(&self) -> &[Range<u64>] {
        self.dropped.ranges()
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<Read> {
        let left = usize::try_from(self.end.saturating_sub(at)).unwrap_or(usize::MAX);
        let most = left.min(into.len());
        let into = &mut into[..most];
        match self.stream {
            _ if most == 0 => Ok(Read::Bytes(0)),
            Some(stream) => self.read_stream(stream, at, into),
            None => {
                let piece = self.reader.read(&self.snapshot, at, into).map_err(io::Error::other)?;
                Ok(answer(piece, at))
            }
        }
    }
}

fn answer(piece: Piece, at: u64) -> Read {
    match piece {
        Piece::Bytes(count) => Read::Bytes(count),
        Piece::Dropped(range) => Read::Dropped(at.min(range.start)..range.end),
        Piece::End => Read::Bytes(0),
    }
}
