//! The log of a process: append-only bytes in a plain file, in the order they arrived.
//!
//! A cursor is a byte offset and never changes its meaning: what the quota drops is dropped from
//! the middle, as a hole in the file. The one [`Writer`] belongs to the process's owner; any
//! number of [`Reader`]s read the file without asking it, up to the [`Extent`] it published. Files come
//! from a [`Pool`]. A short log that has ended is read from memory, and its file is reused.
//!
//! ```text
//!  0        head        dropped (a hole)         tail            len
//!  ├──────────┤·································├────────────────┤
//! ```
//!
//! `writer` and `reader` share what `shared` has and agree on an `extent`; `pool` and `place` are the
//! files, `short` is a log without a file, `recover` a log whose writer is gone. Another
//! writer can resume it. `quota` is arithmetic. `stamps` record when bytes came and on which stream, in a
//! file (`index`); `runs` looks them up. `memory` has what the disk did not take.

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
pub use writer::{Failed, Progress, Pulled, Streams, Writer};

/// One of the two streams a command writes. A merged log and a pty have only `Out`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stream {
    Out,
    Err,
}
