//! Our standard input, for the process: what is typed, or what a pipe brings.

use std::io;

use lastbyte_engine::Signal;
use tokio::sync::{mpsc, oneshot};

use super::detach_key::{Keys, Typed};
use super::session::SessionEnd;
use crate::stdio;

/// What is for the process.
#[derive(Debug)]
pub(crate) enum StdinPiece {
    Bytes(Vec<u8>),
    /// No more comes.
    End,
}

/// Whether the process gets any of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pass {
    On,
    Nothing,
}

/// Read at once.
const PIECE: usize = 32 << 10;
/// Pieces that may wait: a few keys, or as much of a pipe as keeps it moving. They are lost if the
/// process does not want them.
const MAX_WAITING: usize = 4;

/// Begins to read the keys of a terminal; without keys, a stream, whose end is the end of the input.
/// The keys say how they end the session. The thread may wait for input for ever; it does not keep
/// the program from exiting.
pub(crate) fn start(
    keys: Option<Keys>,
    pass: Pass,
) -> io::Result<(mpsc::Receiver<StdinPiece>, oneshot::Receiver<SessionEnd>)> {
    let (input, taken) = mpsc::channel(MAX_WAITING);
    let (left, heard) = oneshot::channel();
    let read = move || match (keys, pass) {
        // Nobody waits for it when the program is on its way out.
        (Some(keys), _) => _ = left.send(read_keys(keys, pass, &input)),
        (None, Pass::On) => read_stream(&input),
        // Not needed, so it is left for the next program.
        (None, Pass::Nothing) => {}
    };
    std::thread::Builder::new().name("standard input".into()).spawn(read)?;
    Ok((taken, heard))
}

/// Until the terminal is left.
fn read_keys(mut keys: Keys, pass: Pass, to: &mpsc::Sender<StdinPiece>) -> SessionEnd {
    loop {
        let bytes = read();
        if bytes.is_empty() {
            // The terminal is gone.
            return SessionEnd::Interrupted(Signal::HUP);
        }
        let Typed { input, detached } = keys.take(&bytes);
        if pass == Pass::On {
            // A process that has ended takes none, and its end can still be left.
            _ = to.blocking_send(StdinPiece::Bytes(input));
        }
        if detached {
            return SessionEnd::Detached;
        }
    }
}

/// Until the input ends or is no longer taken.
fn read_stream(to: &mpsc::Sender<StdinPiece>) {
    loop {
        let bytes = read();
        let ended = bytes.is_empty();
        let input = if ended { StdinPiece::End } else { StdinPiece::Bytes(bytes) };
        if to.blocking_send(input).is_err() {
            return stdio::release_stdin();
        }
        if ended {
            return;
        }
    }
}

/// Waits for some; none is the end, and so is an error.
fn read() -> Vec<u8> {
    let mut bytes = vec![0; PIECE];
    let count = stdio::read_stdin(&mut bytes).unwrap_or(0);
    bytes.truncate(count);
    bytes
}
