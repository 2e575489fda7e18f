//! Log to own stream: the bytes of one stream of a command, written as they come.
//!
//! Each stream has a thread that may wait on its reader as long as it likes: the log keeps what is
//! not written yet, the other stream continues, and signals are handled.

use std::io;
use std::os::fd::BorrowedFd;

use lastbyte_engine::{Hold, LogReader, Process, Snapshot};
use lastbyte_output::log::{Piece, ReadError, Run, Stream};
use lastbyte_sys::Errno;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::stdio;

/// All of the output proper was written, but for what the log itself has lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Delivered {
    /// The last byte was no newline.
    pub(crate) mid_line: bool,
    /// How many bytes the log did not keep.
    pub(crate) lost: u64,
}

/// Why not all of it was.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DeliverError {
    /// The stream has no reader any more, which is not an error.
    #[error("the reader is gone")]
    ReaderGone,
    #[error("cannot write to {name}")]
    Write {
        name: &'static str,
        #[source]
        errno: Errno,
    },
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// What became of a delivery; no value when its thread panicked.
pub(crate) type Outcome = oneshot::Receiver<Result<Delivered, DeliverError>>;

/// Begins to write one stream of the process to our own. Must be called on a runtime.
pub(crate) fn start(process: &Process, stream: Stream, hold: Hold) -> io::Result<Outcome> {
    let (outcome, received) = oneshot::channel();
    let delivery = Delivery::new(process.clone(), stream, hold);
    let runtime = Handle::current();
    std::thread::Builder::new().name(delivery.name.into()).spawn(move || {
        // Nobody waits for it when the program is on its way out.
        _ = outcome.send(delivery.until_ended(&runtime));
    })?;
    Ok(received)
}

struct Delivery {
    process: Process,
    reader: LogReader,
    /// Holds the output back while our own reader is slow.
    hold: Hold,
    stream: Stream,
    to: BorrowedFd<'static>,
    name: &'static str,
    cursor: u64,
    buffer: Vec<u8>,
    delivered: Delivered,
}

/// Large enough for a full pipe at once.
const PIECE: usize = 64 * 1024;

impl Delivery {
    fn new(process: Process, stream: Stream, hold: Hold) -> Self {
        let (to, name) = match stream {
            Stream::Out => (rustix::stdio::stdout(), "standard output"),
            Stream::Err => (rustix::stdio::stderr(), "standard error"),
        };
        Self {
            reader: process.reader(),
            process,
            hold,
            stream,
            to,
            name,
            cursor: 0,
            buffer: vec![0; PIECE],
            delivered: Delivered { mid_line: false, lost: 0 },
        }
    }

    fn until_ended(mut self, runtime: &Handle) -> Result<Delivered, DeliverError> {
        loop {
            let cursor = self.cursor;
            let news = |at: &Snapshot| at.output_len() > cursor || at.ending().is_some();
            let snapshot = runtime.block_on(self.process.wait_for(news));
            while self.cursor < snapshot.output_len() {
                self.step(&snapshot)?;
            }
            if snapshot.ending().is_some() {
                return Ok(self.delivered);
            }
        }
    }

    fn step(&mut self, snapshot: &Snapshot) -> Result<(), DeliverError> {
        let left = snapshot.output_len() - self.cursor;
        let most = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
        let (piece, runs) =
            self.reader.read_runs(snapshot, self.cursor, &mut self.buffer[..most])?;
        match piece {
            Piece::Bytes(count) => {
                for run in runs {
                    self.write(&run)?;
                }
                self.cursor += count as u64;
            }
            Piece::Dropped(gone) => self.skip(gone.end.min(snapshot.output_len())),
            // The file was truncated by another program.
            Piece::End => self.skip(snapshot.output_len()),
        }
        self.hold.advance(self.cursor);
        Ok(())
    }

    fn write(&mut self, run: &Run) -> Result<(), DeliverError> {
        if run.stream != self.stream {
            return Ok(());
        }
        let within = |offset: u64| (offset - self.cursor) as usize; // at most PIECE
        let bytes = &self.buffer[within(run.range.start)..within(run.range.end)];
        self.delivered.mid_line = bytes.last() != Some(&b'\n');
        stdio::write_all(self.to, bytes).map_err(|errno| match errno {
            Errno::PIPE => DeliverError::ReaderGone,
            errno => DeliverError::Write { name: self.name, errno },
        })
    }

    fn skip(&mut self, to: u64) {
        self.delivered.lost += to - self.cursor;
        self.cursor = to;
    }
}
