//! A client over a pair of streams, with one message per line. Each stream has a thread that may
//! block: a pipe that is shared with other programs cannot be made non-blocking without affecting
//! them.

use std::io::{self, Read, Write};
use std::thread;

use tokio::sync::mpsc;

use super::admission::{Incoming, MAX_MESSAGE_BYTES};
use super::connection::Connection;
use super::door::Door;
use super::send_queue::{self, Outgoing};

/// Read and written at once: as much as a pipe holds.
const BLOCK_BYTES: usize = 64 * 1024;

/// Serves one client until its input ends. Must be called on a runtime.
pub async fn serve(
    door: &Door,
    from: impl Read + Send + 'static,
    to: impl Write + Send + 'static,
) -> io::Result<()> {
    let (send_queue, outgoing, delivered) = send_queue::channel();
    // One block waits while the next is being read.
    let (blocks, received) = mpsc::channel(1);
    thread::Builder::new().name("input".into()).spawn(move || read(from, &blocks))?;
    thread::Builder::new().name("output".into()).spawn(move || write(to, outgoing))?;
    let lines = Lines { blocks: received, block: Vec::new(), done: 0 };
    let connection = Connection::new(door.clone(), lines, send_queue, delivered);
    // On a worker of the runtime, like its commands: the caller may block on a thread of its own, and
    // then every message would have to change threads.
    match tokio::spawn(connection.run()).await {
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        // Or the runtime shuts down.
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Cuts blocks into lines.
#[derive(Debug)]
struct Lines {
    blocks: mpsc::Receiver<Vec<u8>>,
    block: Vec<u8>,
    done: usize,
}

impl Incoming for Lines {
    async fn next(&mut self) -> Option<Vec<u8>> {
        while self.done == self.block.len() {
            self.block = self.blocks.recv().await?;
            self.done = 0;
        }
        let rest = &self.block[self.done..];
        let length = rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |at| at + 1);
        let line = rest[..length].to_vec();
        self.done += length;
        Some(line)
    }
}

/// Reads blocks of whole lines until the input ends or the connection is closed.
fn read(mut from: impl Read, blocks: &mpsc::Sender<Vec<u8>>) {
    let mut partial = Partial::default();
    let mut buffer = vec![0; BLOCK_BYTES];
    loop {
        let count = match from.read(&mut buffer) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            // Nothing more can come, as at the end.
            Err(_) => 0,
        };
        let block = match count {
            0 => Some(std::mem::take(&mut partial.rest)),
            count => partial.push(&buffer[..count], MAX_MESSAGE_BYTES),
        };
        let sent = block.is_none_or(|block| blocks.blocking_send(block).is_ok());
        if !sent || count == 0 {
            return;
        }
    }
}

/// A line of which the end was not read yet.
#[derive(Debug, Default)]
struct Partial {
    rest: Vec<u8>,
    /// The line is too long: the rest of it is discarded.
    skipping: bool,
}

impl Partial {
    /// The lines that these bytes complete, if any.
    fn push(&mut self, mut bytes: &[u8], most: usize) -> Option<Vec<u8>> {
        match bytes.iter().position(|byte| *byte == b'\n') {
            Some(end) if self.skipping || self.rest.len() + end > most => {
                *self = Self::default();
                bytes = &bytes[end + 1..];
            }
            None if self.skipping => return None,
            Some(_) | None => {}
        }
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let (lines, rest) = bytes.split_at(whole);
        let mut block = Vec::new();
        if !lines.is_empty() {
            block = std::mem::take(&mut self.rest);
            block.extend_from_slice(lines);
        }
        self.rest.extend_from_slice(rest);
        if self.rest.len() > most {
            (self.rest, self.skipping) = (Vec::new(), true);
        }
        (!block.is_empty()).then_some(block)
    }
}

/// Writes messages, small ones together, until there are no more or the client does not take them.
fn write(mut to: impl Write, mut outgoing: Outgoing) {
    while let Some(first) = outgoing.messages.blocking_recv() {
        let mut bytes = Vec::with_capacity(first.text.len() + 1);
        // Kept until they are written: only then their space is free.
        let mut messages = Vec::new();
        let mut next = Some(first);
        while let Some(message) = next {
            bytes.extend_from_slice(message.text.as_bytes());
            bytes.push(b'\n');
            messages.push(message);
            next = if bytes.len() < BLOCK_BYTES { outgoing.messages.try_recv().ok() } else { None };
        }
        if write_all(&mut to, &bytes, &outgoing).is_err() {
            return;
        }
    }
}

fn write_all(to: &mut impl Write, mut bytes: &[u8], outgoing: &Outgoing) -> io::Result<()> {
    while !bytes.is_empty() {
        match to.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => {
                bytes = &bytes[count..];
                outgoing.delivered(count);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    to.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(chunks: &[&str]) -> Vec<String> {
        let mut partial = Partial::default();
        let blocks = chunks.iter().filter_map(|chunk| partial.push(chunk.as_bytes(), 4));
        blocks.map(|block| String::from_utf8(block).unwrap()).collect()
    }

    #[test]
    fn lines_are_put_together_again_however_they_were_cut() {
        assert_eq!(blocks(&["a\nb", "c", "d\ne\n", "f"]), ["a\n", "bcd\ne\n"]);
        assert_eq!(blocks(&["\n", "", "\n\n"]), ["\n", "\n\n"]);
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped_and_its_neighbours_are_not() {
        assert_eq!(blocks(&["1234\n"]), ["1234\n"]);
        assert_eq!(blocks(&["12345\nb\n"]), ["b\n"]);
        assert_eq!(blocks(&["a\n123", "45\nb\n"]), ["a\n", "b\n"]);
        assert_eq!(blocks(&["a\n12345", "6789", "0\nb\n"]), ["a\n", "b\n"]);
        assert_eq!(blocks(&["12345", "6\n"]), Vec::<String>::new());
    }
}
