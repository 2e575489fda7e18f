//! Our standard input, for the process: what is typed, or what a pipe brings.

use std::io;

use tokio::sync::{mpsc, oneshot};

use super::detach_key::{Keys, Typed};
use crate::stdio;

/// What is for the process.
#[derive(Debug)]
pub(crate) enum Input {
    Bytes(Vec<u8>),
    /// No more comes.
    End,
}

/// Why nothing more is read, where that ends more than the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leave {
    Detached,
    /// The terminal is gone.
    HungUp,
}

/// Where our standard input comes from.
#[derive(Debug)]
pub(crate) enum Source {
    /// A terminal that gives every key.
    Keys(Keys),
    /// Anything else, whose end is the end of the input.
    Stream,
}

/// Whether the process gets any of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pass {
    On,
    Nothing,
}

/// Read at once.
const PIECE: usize = 64 << 10;
/// Pieces that may wait: a few keys, or as much of a pipe as keeps it moving.
const MAX_WAITING: usize = 4;

/// Begins to read. The thread may wait for input for ever; it does not keep the program from exiting.
pub(crate) fn start(
    source: Source,
    pass: Pass,
) -> io::Result<(mpsc::Receiver<Input>, oneshot::Receiver<Leave>)> {
    let (input, taken) = mpsc::channel(MAX_WAITING);
    let (left, heard) = oneshot::channel();
    match (&source, pass) {
        // Not needed, so it is left for the next program.
        (Source::Stream, Pass::Nothing) => {}
        (Source::Stream, Pass::On) | (Source::Keys(_), _) => {
            let read = move || {
                if let Some(why) = read(source, pass, &input) {
                    // Nobody waits for it when the program is on its way out.
                    _ = left.send(why);
                }
            };
            std::thread::Builder::new().name("standard input".into()).spawn(read)?;
        }
    }
    Ok((taken, heard))
}

/// Until the input ends or is no longer taken.
fn read(mut source: Source, pass: Pass, to: &mpsc::Sender<Input>) -> Option<Leave> {
    let mut buffer = vec![0; PIECE];
    loop {
        // A read error counts as the end of input.
        let count = stdio::read_stdin(&mut buffer).unwrap_or(0);
        let (bytes, left) = match &mut source {
            Source::Keys(_) if count == 0 => return Some(Leave::HungUp),
            Source::Keys(keys) => match keys.take(&buffer[..count]) {
                Typed::Input(bytes) => (bytes, None),
                Typed::Detach(bytes) => (bytes, Some(Leave::Detached)),
            },
            Source::Stream => (buffer[..count].to_vec(), None),
        };
        let input = if count == 0 { Input::End } else { Input::Bytes(bytes) };
        let taken = pass == Pass::Nothing || to.blocking_send(input).is_ok();
        if left.is_some() || count == 0 {
            return left;
        }
        if let (false, Source::Stream) = (taken, &source) {
            stdio::release_stdin();
            return None;
        }
    }
}
