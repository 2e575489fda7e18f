//! A client over a pair of streams, with one message per line. Each stream has a thread that may
//! block: a pipe that is shared with other programs cannot be made non-blocking without affecting
//! them.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::thread;

use tokio::sync::mpsc;

use super::send_queue::{self, OutgoingMessages, Progress, SendQueue};
use super::{Incoming, MAX_MESSAGE_BYTES};

/// Read and written at once: as much as a pipe holds.
const BLOCK_BYTES: usize = 64 * 1024;

/// A client on these streams: its messages, and the way to it. Must be called on a runtime.
pub(crate) fn open(
    from: impl Read + Send + 'static,
    to: impl Write + AsFd + Send + 'static,
) -> io::Result<(LineReader, SendQueue, Progress)> {
    let stream = to.as_fd().try_clone_to_owned()?;
    let (send_queue, outgoing, progress) = send_queue::channel_of_lines(stream);
    // One block waits while the next is being read.
    let (blocks, received) = mpsc::channel(1);
    thread::Builder::new().name("input".into()).spawn(move || read(from, &blocks))?;
    thread::Builder::new().name("output".into()).spawn(move || write(to, outgoing))?;
    Ok((LineReader::new(received, MAX_MESSAGE_BYTES), send_queue, progress))
}

/// Runs a connection on a worker of the runtime, like its commands: the caller may block on a thread of
/// its own, and then every message would have to change threads.
pub(crate) async fn run(connection: impl Future<Output = ()> + Send + 'static) {
    match tokio::spawn(connection).await {
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        // Or the runtime shuts down.
        Ok(()) | Err(_) => {}
    }
}

/// Cuts blocks into lines.
#[derive(Debug)]
pub(crate) struct LineReader {
    blocks: mpsc::Receiver<Vec<u8>>,
    block: Vec<u8>,
    /// How much of the block was looked at.
    done: usize,
    /// A line of which the end was not seen yet. When it is too long, the rest of it is discarded.
    line: Vec<u8>,
    max_bytes: usize,
}

impl LineReader {
    fn new(blocks: mpsc::Receiver<Vec<u8>>, max_bytes: usize) -> Self {
        Self { blocks, block: Vec::new(), done: 0, line: Vec::new(), max_bytes }
    }

    /// The next line that ends in the block.
    fn whole_line(&mut self) -> Option<Vec<u8>> {
        let rest = &self.block[self.done..];
        let end = rest.iter().position(|byte| *byte == b'\n');
        let part = &rest[..end.unwrap_or(rest.len())];
        if self.line.len() <= self.max_bytes {
            self.line.extend_from_slice(part);
        }
        self.done += part.len() + usize::from(end.is_some());
        end.map(|_| std::mem::take(&mut self.line))
    }
}

impl Incoming for LineReader {
    /// Without the newline, which the last line may lack. A line that is too long is skipped.
    async fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(line) = self.whole_line() {
                if line.len() <= self.max_bytes {
                    return Some(line);
                }
            } else if let Some(block) = self.blocks.recv().await {
                (self.block, self.done) = (block, 0);
            } else {
                let last = std::mem::take(&mut self.line);
                return (1..=self.max_bytes).contains(&last.len()).then_some(last);
            }
        }
    }
}

/// Reads blocks until the input ends or the connection is closed.
fn read(mut from: impl Read, blocks: &mpsc::Sender<Vec<u8>>) {
    let mut buffer = vec![0; BLOCK_BYTES];
    loop {
        match from.read(&mut buffer) {
            Ok(count) if count > 0 => {
                if blocks.blocking_send(buffer[..count].to_vec()).is_err() {
                    return;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Nothing more can come after an error, as at the end.
            Ok(_) | Err(_) => return,
        }
    }
}

/// Writes messages, small ones together, until there are no more or the client does not take them.
fn write(mut to: impl Write, mut outgoing: OutgoingMessages) {
    while let Some(first) = outgoing.messages.blocking_recv() {
        let mut bytes = Vec::with_capacity(first.text.len() + 1);
        // Kept until they are written: only then their space is free.
        let mut messages = Vec::new();
        let mut next = Some(first);
        while let Some(message) = next {
            bytes.extend_from_slice(message.rest());
            bytes.push(b'\n');
            messages.push(message);
            next = if bytes.len() < BLOCK_BYTES { outgoing.messages.try_recv().ok() } else { None };
        }
        if write_all(&mut to, &bytes, &outgoing).is_err() {
            return;
        }
        outgoing.written(messages.len());
    }
}

fn write_all(to: &mut impl Write, mut bytes: &[u8], outgoing: &OutgoingMessages) -> io::Result<()> {
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
    use std::io::{BufRead, BufReader, pipe};

    use super::*;

    async fn lines(blocks: &[&str]) -> Vec<String> {
        let (sender, receiver) = mpsc::channel(blocks.len());
        for block in blocks {
            sender.send(block.as_bytes().to_vec()).await.unwrap();
        }
        drop(sender);
        let mut reader = LineReader::new(receiver, 4);
        let mut lines = Vec::new();
        while let Some(line) = reader.next().await {
            lines.push(String::from_utf8(line).unwrap());
        }
        lines
    }

    /// Short ones are written by the tasks, long ones by the thread.
    #[tokio::test]
    async fn messages_of_many_senders_arrive_whole_and_in_order() {
        const SENDERS: usize = 4;
        const EACH: usize = 3000;
        let (from, to) = pipe().unwrap();
        let (_, send_queue, _) = open(io::empty(), to).unwrap();
        for sender in 0..SENDERS {
            let send_queue = send_queue.clone();
            thread::spawn(move || {
                for number in 0..EACH {
                    let long = if number % 17 == 0 { 9000 } else { number % 300 };
                    send_queue.answer(format!("{sender} {number} {}", "x".repeat(long)));
                }
            });
        }
        drop(send_queue);
        let mut next = [0; SENDERS];
        for line in BufReader::new(from).lines() {
            let line = line.unwrap();
            let fields: Vec<&str> = line.split(' ').collect();
            let &[sender, number, tail] = &fields[..] else { panic!("cut: {line}") };
            let (sender, number): (usize, usize) =
                (sender.parse().unwrap(), number.parse().unwrap());
            assert_eq!(number, next[sender], "of sender {sender}");
            assert_eq!(tail.len(), if number % 17 == 0 { 9000 } else { number % 300 });
            next[sender] += 1;
        }
        assert_eq!(next, [EACH; SENDERS]);
    }

    #[tokio::test]
    async fn lines_are_put_together_again_however_they_were_cut() {
        assert_eq!(lines(&["a\nb", "c", "d\ne\n", "f"]).await, ["a", "bcd", "e", "f"]);
        assert_eq!(lines(&["\n", "", "\n\n"]).await, ["", "", ""]);
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_skipped_and_its_neighbours_are_not() {
        assert_eq!(lines(&["1234\n"]).await, ["1234"]);
        assert_eq!(lines(&["12345\nb\n"]).await, ["b"]);
        assert_eq!(lines(&["a\n123", "45\nb\n"]).await, ["a", "b"]);
        assert_eq!(lines(&["a\n12345", "6789", "0\nb\n"]).await, ["a", "b"]);
        assert_eq!(lines(&["12345", "\n"]).await, Vec::<String>::new());
        assert_eq!(lines(&["12345"]).await, Vec::<String>::new());
    }
}
