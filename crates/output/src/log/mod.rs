//! The log of a process: append-only bytes in a plain file, in the order they arrived.
//!
//! A cursor is a byte offset and never changes its meaning: what the quota drops is dropped from
//! the middle, as a hole in the file. The one [`Writer`] belongs to the process's owner; any
//! number of [`Reader`]s look at the file without asking it, up to the [`Extent`] it published.
//! Files come from a [`Pool`]. A log that has ended and is short is served from memory, and its file
//! is used again.
//!
//! ```text
//!  0        head        dropped (a hole)         tail            len
//!  ├──────────┤·································├────────────────┤
//! ```
//!
//! `writer` and `reader` agree on an `extent` and share what `shared` has; `pool` and `place` are the
//! files, `short` a log without one, `recover` a log whose writer is gone. `quota` is arithmetic.
//! `stamps` say when bytes came and on which stream: in a file (`index`) or in memory (`unwritten`);
//! `runs` is what readers make of them. `memory` is the tail after the disk has failed.

mod extent;
mod index;
mod memory;
mod place;
mod pool;
mod quota;
mod reader;
mod recover;
mod runs;
mod shared;
mod short;
mod stamps;
mod unwritten;
mod writer;

pub use extent::{Dropped, Extent};
pub use place::Place;
pub use pool::{LogFile, Pool};
pub use quota::{Quota, QuotaTooSmall};
pub use reader::{Horizon, Piece, ReadError, Reader, Stamped};
pub use recover::Recovered;
pub use runs::Run;
pub use short::ShortLog;
pub use stamps::{RESOLUTION, Stamp};
pub use writer::{Failed, Pulled, Streams, Writer};

/// One of the two streams a command writes. A merged log and a pty have only `Out`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stream {
    Out,
    Err,
}
