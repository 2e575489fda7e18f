//! Lines of standard input and output, each by a thread of its own: either may block for as long as the
//! client likes.

use std::io;
use std::thread;

use anyhow::Context;
use rustix::stdio::stdout;
use tokio::sync::{mpsc, oneshot};

use crate::stdio;

/// A longer line is refused: the server takes no larger request.
const LONGEST: usize = 16 << 20;
/// What is read at once.
const PIECE: usize = 16 << 10;
/// Lines that wait for their turn. Few, since each can be long.
const WAITING: usize = 4;
/// Enough for what these threads do.
const STACK: usize = 64 << 10;

/// The lines of standard input, without their newlines, until its end.
pub(super) fn read() -> anyhow::Result<mpsc::Receiver<io::Result<Vec<u8>>>> {
    let (lines, received) = mpsc::channel(WAITING);
    spawn("stdin", move || {
        let mut reader = LineReader::default();
        loop {
            let line = reader.next(|into| Ok(stdio::read_stdin(into)?));
            let is_last = !matches!(line, Ok(Some(_)));
            let Some(line) = line.transpose() else { return };
            if lines.blocking_send(line).is_err() || is_last {
                return;
            }
        }
    })?;
    Ok(received)
}

/// Writes each message as a line. Also returns what ends when all of them are written, or nobody reads
/// them.
pub(super) fn write() -> anyhow::Result<(mpsc::Sender<Vec<u8>>, oneshot::Receiver<()>)> {
    let (messages, mut received) = mpsc::channel::<Vec<u8>>(WAITING);
    let (done, is_done) = oneshot::channel();
    spawn("stdout", move || {
        while let Some(mut message) = received.blocking_recv() {
            message.push(b'\n');
            if stdio::write_all(stdout(), &message).is_err() {
                // There is nobody to tell.
                break;
            }
        }
        _ = done.send(()); // the shim may have ended first
    })?;
    Ok((messages, is_done))
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> anyhow::Result<()> {
    let thread = thread::Builder::new().name(name.into()).stack_size(STACK).spawn(run);
    thread.map(drop).context("cannot start a thread for standard input and output")
}

/// Finds lines in what is read.
#[derive(Default)]
struct LineReader {
    bytes: Vec<u8>,
    /// How much of it has no newline.
    searched: usize,
    is_over: bool,
}

impl LineReader {
    /// The next line that is not empty; the last one may have no newline. `None` at the end.
    fn next(
        &mut self,
        mut read: impl FnMut(&mut [u8]) -> io::Result<usize>,
    ) -> io::Result<Option<Vec<u8>>> {
        loop {
            let newline = self.bytes[self.searched..].iter().position(|byte| *byte == b'\n');
            if let Some(newline) = newline {
                let rest = self.bytes.split_off(self.searched + newline + 1);
                let mut line = std::mem::replace(&mut self.bytes, rest);
                self.searched = 0;
                line.pop();
                if !line.trim_ascii().is_empty() {
                    return Ok(Some(line));
                }
                continue;
            }
            self.searched = self.bytes.len();
            if self.is_over {
                let last = std::mem::take(&mut self.bytes);
                self.searched = 0;
                return Ok((!last.trim_ascii().is_empty()).then_some(last));
            }
            if self.bytes.len() > LONGEST {
                let message = format!("a line of standard input is longer than {LONGEST} bytes");
                return Err(io::Error::other(message));
            }
            let end = self.bytes.len();
            self.bytes.resize(end + PIECE, 0);
            let count = read(&mut self.bytes[end..])?;
            self.bytes.truncate(end + count);
            self.is_over = count == 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[&[u8]]) -> Vec<String> {
        let (mut reader, mut pieces) = (LineReader::default(), pieces.iter());
        let mut read = move |into: &mut [u8]| {
            let piece = pieces.next().copied().unwrap_or_default();
            into[..piece.len()].copy_from_slice(piece);
            Ok(piece.len())
        };
        std::iter::from_fn(|| reader.next(&mut read).unwrap())
            .map(|line| String::from_utf8(line).unwrap())
            .collect()
    }

    #[test]
    fn lines_are_found_wherever_the_pieces_end() {
        assert_eq!(lines(&[b"a", b"b\nc\n\n", b" \nd", b"e"]), ["ab", "c", "de"]);
        assert_eq!(lines(&[]), [""; 0]);
        assert_eq!(lines(&[b"\r\n", b"x\n"]), ["x"]);
    }

    #[test]
    fn a_line_that_never_ends_is_refused() {
        let mut reader = LineReader::default();
        let endless = |into: &mut [u8]| {
            into.fill(b'x');
            Ok(into.len())
        };
        assert!(reader.next(endless).is_err());
    }
}
