//! One message a line, over any pair of streams. Each has a thread, which may wait as long as it
//! likes: a pipe that is shared with others cannot be made non-blocking without their noticing.

use std::io::{self, Read, Write};
use std::thread;

use tokio::sync::mpsc;

use super::incoming::{Incoming, MOST_MESSAGE_BYTES};
use crate::doors::codex::closing::Progress;
use crate::doors::codex::connection::Connection;
use crate::doors::codex::door::Door;
use crate::doors::codex::outbox::{Outbox, Parcels};

/// As much as a pipe holds.
const AT_ONCE: usize = 64 * 1024;

/// Serves one client until its input ends. Must be called on a runtime.
pub async fn serve(
    door: &Door,
    from: impl Read + Send + 'static,
    to: impl Write + Send + 'static,
) -> io::Result<()> {
    let (outbox, parcels) = Outbox::new();
    let (progress, delivered) = Progress::new();
    // One block waits while the next is being read.
    let (blocks, received) = mpsc::channel(1);
    thread::Builder::new().name("input".into()).spawn(move || read(from, &blocks))?;
    thread::Builder::new().name("output".into()).spawn(move || write(to, parcels, &progress))?;
    let lines = Lines { blocks: received, block: Vec::new(), done: 0 };
    let connection = Connection::new(door.clone(), lines, outbox, delivered);
    // On a worker of the runtime, beside its lanes: who waits here may be a thread of its own, to
    // which every message and every end would have to be handed over.
    match tokio::spawn(connection.run()).await {
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        // A runtime that shuts down has ended it.
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

/// Reads blocks of whole lines until the input ends or nobody wants them.
fn read(mut from: impl Read, blocks: &mpsc::Sender<Vec<u8>>) {
    let mut gathering = Gathering::default();
    let mut buffer = vec![0; AT_ONCE];
    loop {
        let count = match from.read(&mut buffer) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            // Nothing more can come, as at the end.
            Err(_) => 0,
        };
        let block = match count {
            0 => Some(std::mem::take(&mut gathering.rest)),
            count => gathering.push(&buffer[..count], MOST_MESSAGE_BYTES),
        };
        let sent = block.is_none_or(|block| blocks.blocking_send(block).is_ok());
        if !sent || count == 0 {
            return;
        }
    }
}

/// What was read of a line that is not whole yet.
#[derive(Debug, Default)]
struct Gathering {
    rest: Vec<u8>,
    /// The line is too long: the rest of it is thrown away.
    skipping: bool,
}

impl Gathering {
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

/// Writes what comes, small messages together, until no more comes or nobody takes it.
fn write(mut to: impl Write, mut parcels: Parcels, progress: &Progress) {
    while let Some(first) = parcels.blocking_recv() {
        let mut bytes = Vec::with_capacity(first.text.len() + 1);
        // Kept until they are written: only then their room is free.
        let mut gathered = Vec::new();
        let mut next = Some(first);
        while let Some(parcel) = next {
            bytes.extend_from_slice(parcel.text.as_bytes());
            bytes.push(b'\n');
            gathered.push(parcel);
            next = if bytes.len() < AT_ONCE { parcels.try_recv().ok() } else { None };
        }
        if write_all(&mut to, &bytes, progress).is_err() {
            return;
        }
    }
}

fn write_all(to: &mut impl Write, mut bytes: &[u8], progress: &Progress) -> io::Result<()> {
    while !bytes.is_empty() {
        match to.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => {
                bytes = &bytes[count..];
                progress.taken(count);
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
        let mut gathering = Gathering::default();
        let blocks = chunks.iter().filter_map(|chunk| gathering.push(chunk.as_bytes(), 4));
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
