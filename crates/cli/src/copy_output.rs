//! Log to own stream: the bytes of one stream of a command, written as they come.
//!
//! Each stream has a thread that may wait on its reader as long as it likes: the log keeps what is
//! not written yet, the other stream continues, and signals are handled.

use std::io;
use std::os::fd::BorrowedFd;

use lastbyte_client::wire;
use lastbyte_engine::{Hold, Process, Snapshot};
use lastbyte_output::log::Stream;
use lastbyte_server::verbs::follow::{Follower, Part, Step};
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
    Read(#[from] wire::Error),
    #[error("cannot start a thread for output")]
    NoThread(#[source] io::Error),
    #[error("an output thread failed")]
    Panicked,
}

/// Writes one stream of the process to our own, on a thread if there is any output.
pub(crate) async fn deliver(
    process: &Process,
    stream: Stream,
    hold: Hold,
) -> Result<Delivered, DeliverError> {
    let begun = |now: &Snapshot| now.extent.len > 0 || now.ending().is_some();
    let has_output = process.wait_for(begun).await.extent.len > 0;
    let delivery = Delivery::new(process, stream, hold);
    if !has_output {
        return Ok(delivery.delivered);
    }
    let (outcome, received) = oneshot::channel();
    let (name, runtime) = (delivery.name.into(), Handle::current());
    let thread = std::thread::Builder::new().name(name).spawn(move || {
        // Nobody waits for it when the program is on its way out.
        _ = outcome.send(delivery.until_ended(&runtime));
    });
    thread.map_err(DeliverError::NoThread)?;
    received.await.unwrap_or(Err(DeliverError::Panicked))
}

struct Delivery {
    follower: Follower,
    /// Holds the output back while our own reader is slow.
    hold: Hold,
    stream: Stream,
    to: BorrowedFd<'static>,
    name: &'static str,
    delivered: Delivered,
}

impl Delivery {
    fn new(process: &Process, stream: Stream, hold: Hold) -> Self {
        let (to, name) = match stream {
            Stream::Out => (rustix::stdio::stdout(), "standard output"),
            Stream::Err => (rustix::stdio::stderr(), "standard error"),
        };
        let delivered = Delivered { mid_line: false, lost: 0 };
        Self { follower: Follower::from_start(process), hold, stream, to, name, delivered }
    }

    fn until_ended(mut self, runtime: &Handle) -> Result<Delivered, DeliverError> {
        while let Some(step) = runtime.block_on(self.follower.next())? {
            match step {
                Step::Output(parts) => parts.iter().try_for_each(|part| self.write(part))?,
                Step::Dropped(gone) => self.delivered.lost += gone.end - gone.start,
                Step::Ending(_) => break,
            }
            self.hold.advance(self.follower.place().cursor);
        }
        Ok(self.delivered)
    }

    fn write(&mut self, part: &Part) -> Result<(), DeliverError> {
        if part.stream != Some(self.stream) {
            return Ok(());
        }
        let bytes = self.follower.bytes(&part.range);
        self.delivered.mid_line = bytes.last() != Some(&b'\n');
        stdio::write_all(self.to, bytes).map_err(|errno| match errno {
            Errno::PIPE => DeliverError::ReaderGone,
            errno => DeliverError::Write { name: self.name, errno },
        })
    }
}
