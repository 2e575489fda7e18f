//! The events of one process under one row of numbers: output, `exited` and `closed`.
//!
//! The numbers begin with 1 and have no gaps. `closed` is the last: it comes when the leader has exited
//! and nobody has the output open any more.

use lastbyte_engine::{LogReader, Process, Streams};
use lastbyte_output::log::{Piece, Stream};
use tokio::sync::watch;

use super::chunks::{Chunk, Chunks};

/// One process as its clients see it.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) process: Process,
    pub(super) events: watch::Sender<Events>,
    /// Stops that are not proved yet: `exited` waits for them.
    pub(super) stops: watch::Sender<usize>,
}

/// What has happened so far.
#[derive(Debug, Default)]
pub(super) struct Events {
    chunks: Chunks,
    exited: Option<Exited>,
    is_closed: bool,
    /// Bytes of output that are not in the log any more.
    pub(super) lost: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Exited {
    pub(super) seq: u64,
    pub(super) code: i32,
    pub(super) sandbox_denied: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Event {
    Output(Chunk),
    Exited(Exited),
    Closed,
}

impl Events {
    /// The number of the last event; 0 if there is none.
    pub(super) fn last(&self) -> u64 {
        self.chunks.len() as u64 + u64::from(self.exited.is_some()) + u64::from(self.is_closed)
    }

    pub(super) fn get(&self, seq: u64) -> Option<Event> {
        if self.is_closed && seq == self.last() {
            return Some(Event::Closed);
        }
        let before = match self.exited {
            Some(exited) if seq == exited.seq => return Some(Event::Exited(exited)),
            Some(exited) if seq > exited.seq => 2,
            Some(_) | None => 1,
        };
        let index = usize::try_from(seq.checked_sub(before)?).ok()?;
        self.chunks.get(index).map(Event::Output)
    }

    pub(super) fn exited(&self) -> Option<Exited> {
        self.exited
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    pub(super) fn chunks(&mut self) -> &mut Chunks {
        &mut self.chunks
    }

    /// The leader's exit; only the first counts.
    pub(super) fn exit(&mut self, code: i32, sandbox_denied: bool) {
        let seq = self.last() + 1;
        self.exited.get_or_insert(Exited { seq, code, sandbox_denied });
    }

    pub(super) fn close(&mut self) {
        self.is_closed = true;
    }
}

impl Record {
    pub(super) fn new(process: Process) -> Self {
        Self { process, events: watch::Sender::default(), stops: watch::Sender::new(0) }
    }

    /// Waits for an event past this number, or until there will be no more. Cancel-safe.
    pub(super) async fn until_past(&self, seq: u64) {
        let mut events = self.events.subscribe();
        // The sender is here, so this only ever ends with such an event.
        _ = events.wait_for(|events| events.last() > seq || events.is_closed()).await;
    }

    /// Whatever was not told by then is lost.
    pub(super) fn end_after_panic(&self) {
        self.events.send_modify(|events| {
            events.exit(-1, false);
            events.close();
        });
    }

    pub(super) fn stream_name(&self, stream: Stream) -> &'static str {
        match (self.process.spec().streams, stream) {
            (Streams::Pty(_), _) => "pty",
            (Streams::Split | Streams::Merged, Stream::Out) => "stdout",
            (Streams::Split | Streams::Merged, Stream::Err) => "stderr",
        }
    }

    /// The bytes of a chunk. None are left of one that was dropped from the log, or if it cannot be read.
    /// Takes no longer than a copy from the page cache.
    pub(super) fn bytes(&self, reader: &LogReader, chunk: &Chunk) -> Vec<u8> {
        let snapshot = self.process.snapshot();
        let len = usize::try_from(chunk.range.end - chunk.range.start).unwrap_or(usize::MAX);
        // Whatever is longer was dropped: no chunk of what was read is.
        let mut bytes = vec![0; len.min(MOST_CHUNK_BYTES)];
        match reader.read_runs(&snapshot, chunk.range.start, &mut bytes) {
            Ok((Piece::Bytes(_), runs)) => {
                let own = runs.into_iter().filter(|run| run.stream == chunk.stream);
                let at = |cursor: u64| (cursor - chunk.range.start) as usize;
                own.flat_map(|run| bytes[at(run.range.start)..at(run.range.end)].to_vec()).collect()
            }
            Ok((Piece::Dropped(_) | Piece::End, _)) => Vec::new(),
            Err(error) => {
                tracing::warn!(%error, "cannot read output");
                Vec::new()
            }
        }
    }
}

/// What one step of a follower has at most.
pub(super) const MOST_CHUNK_BYTES: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_run_over_output_exited_and_closed() {
        let mut events = Events::default();
        assert_eq!((events.last(), events.get(1)), (0, None));
        events.chunks().push(0..5, Stream::Out);
        events.exit(3, false);
        events.exit(4, true);
        events.chunks().push(5..7, Stream::Err);
        let output = |range, stream| Event::Output(Chunk { range, stream });
        let exited = Exited { seq: 2, code: 3, sandbox_denied: false };
        assert_eq!(events.get(1), Some(output(0..5, Stream::Out)));
        assert_eq!(events.get(2), Some(Event::Exited(exited)));
        assert_eq!(events.get(3), Some(output(5..7, Stream::Err)));
        assert_eq!((events.get(0), events.get(4)), (None, None));
        events.close();
        assert_eq!((events.last(), events.get(4)), (4, Some(Event::Closed)));
        assert_eq!(events.get(5), None);
    }

    #[test]
    fn a_silent_process_has_two_events() {
        let mut events = Events::default();
        events.exit(0, false);
        events.close();
        let exited = Exited { seq: 1, code: 0, sandbox_denied: false };
        assert_eq!(events.get(1), Some(Event::Exited(exited)));
        assert_eq!((events.get(2), events.last()), (Some(Event::Closed), 2));
    }
}
