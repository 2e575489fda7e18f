//! Output with secrets: taken from its pipe, masked, and appended to the log.
//!
//! With a keeper, a kill of this program loses nothing. What is not in the log is in the files of
//! [`Staged`], and the file of secrets has a checkpoint, which is written before each append: how long
//! the log is, and where in its stream each masker is. The next program masks again from there. It
//! gets the same bytes, and skips those that the log has already.

mod checkpoint;
#[cfg(test)]
mod tests;

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use lastbyte_output::log::{Pulled, Stream, Writer};
use lastbyte_output::mask::{Masker, Patterns, Secret};
use lastbyte_sys::memory_file;
use lastbyte_sys::registry::{Entered, Purpose, Slot};

use super::staged::Staged;
use checkpoint::{Checkpoint, Reached};

/// The maskers of a process, one for each stream.
#[derive(Debug)]
pub(crate) struct Masking {
    /// Secrets and checkpoint; `None` without a keeper.
    file: Option<Entered>,
    /// Standard output or both, and standard error.
    streams: [Masked; 2],
    /// Of an earlier program: the stream that it stored last, and how long the log was before.
    last_append: (usize, u64),
    /// What was taken last.
    taken: Vec<u8>,
}

#[derive(Debug)]
struct Masked {
    masker: Masker,
    staged: Staged,
    /// How many bytes the masker was given.
    pushed: u64,
    /// Where the masker was before it was given what is not stored.
    reached: Reached,
    /// Not stored yet.
    out: Vec<u8>,
    /// How much of what comes out the log has already.
    skip: usize,
}

impl Masking {
    pub(crate) fn create(
        secrets: &[Secret],
        slot: Option<&Arc<Slot>>,
        is_split: bool,
    ) -> io::Result<Self> {
        let create = |purpose| {
            let Some(slot) = slot else { return Ok(None) };
            let file = memory_file::create("lastbyte secrets")?;
            io::Result::Ok(Some(Entered::new(file, Some(slot), purpose)))
        };
        let file = create(Purpose::Secrets)?;
        file.iter().try_for_each(|file| checkpoint::begin(file, secrets))?;
        let error = if is_split { create(Purpose::StagedError)? } else { None };
        let staged = [create(Purpose::Staged)?, error];
        Self::new(secrets, file, staged, Checkpoint::default())
    }

    /// With the files of a program that is gone.
    pub(crate) fn resume(file: Entered, staged: [Option<Entered>; 2]) -> io::Result<Self> {
        let (checkpoint, secrets) = checkpoint::read(&file)?;
        Self::new(&secrets, Some(file), staged, checkpoint)
    }

    fn new(
        secrets: &[Secret],
        file: Option<Entered>,
        [out, error]: [Option<Entered>; 2],
        checkpoint: Checkpoint,
    ) -> io::Result<Self> {
        let Checkpoint { stream, log_len, reached } = checkpoint;
        let patterns = Arc::new(Patterns::new(secrets).map_err(io::Error::other)?);
        let streams =
            [Masked::new(&patterns, out, reached[0])?, Masked::new(&patterns, error, reached[1])?];
        Ok(Self { file, streams, last_append: (stream, log_len), taken: Vec::new() })
    }

    pub(super) fn enter(&self) {
        self.file.iter().for_each(Entered::enter);
        self.streams.iter().for_each(|stream| stream.staged.enter());
    }

    /// How many secrets were masked.
    pub(super) fn masked(&self) -> u64 {
        self.streams.iter().map(|stream| stream.masker.masked()).sum()
    }

    /// Masks and stores what an earlier program has taken and not stored.
    pub(super) fn catch_up(&mut self, writer: &mut Writer, now_ms: u64) {
        let (last, before) = self.last_append;
        let appended = writer.progress().len.saturating_sub(before);
        self.streams[last].skip = usize::try_from(appended).unwrap_or(usize::MAX);
        let [first, second] =
            if last == 0 { [Stream::Out, Stream::Err] } else { [Stream::Err, Stream::Out] };
        self.store_staged(writer, first, now_ms);
        // Before a checkpoint of the other stream says that none of it is in the log.
        if self.streams[last].is_ahead() {
            self.streams[last].let_out();
            self.store(writer, first, now_ms);
        }
        self.store_staged(writer, second, now_ms);
    }

    fn store_staged(&mut self, writer: &mut Writer, stream: Stream, now_ms: u64) {
        while self.streams[stream as usize].push_staged(&mut self.taken)
            && self.store(writer, stream, now_ms)
        {}
    }

    /// Takes what is ready in the pipe and stores what is decided of it.
    pub(super) fn pull(
        &mut self,
        writer: &mut Writer,
        pipe: impl AsFd,
        (stream, most): (Stream, usize),
        now_ms: u64,
    ) -> Pulled {
        let masked = &mut self.streams[stream as usize];
        let pulled = match masked.out.len() {
            0 if masked.push_staged(&mut self.taken) => Pulled::Bytes(self.taken.len()),
            0 => masked.push_next(pipe, most, &mut self.taken),
            // There was no descriptor for the log.
            left => Pulled::Bytes(left),
        };
        if self.store(writer, stream, now_ms) { pulled } else { Pulled::NotNow }
    }

    /// The stream is at its end. Returns how many bytes were stored.
    pub(super) fn close(&mut self, writer: &mut Writer, stream: Stream, now_ms: u64) -> usize {
        let masked = &mut self.streams[stream as usize];
        while masked.push_staged(&mut self.taken) {}
        masked.masker.finish(&mut masked.out);
        let count = masked.out.len();
        if !self.store(writer, stream, now_ms) {
            // It cannot wait any longer: the log goes on in memory.
            writer.hurry();
            self.store(writer, stream, now_ms);
        }
        count
    }

    /// The output has ended. What is held back of a stream that others hold open is late output, unless
    /// it is only a byte or two.
    pub(super) fn end(&mut self, writer: &mut Writer, now_ms: u64) {
        for stream in [Stream::Out, Stream::Err] {
            let masked = &mut self.streams[stream as usize];
            masked.masker.show_few(&mut masked.out);
            if !masked.out.is_empty() && self.store(writer, stream, now_ms) {
                // That they came out is known from nothing else.
                self.note(stream, writer.progress().len);
            }
        }
    }

    /// Returns false if the log has no descriptor for it now.
    fn store(&mut self, writer: &mut Writer, stream: Stream, now_ms: u64) -> bool {
        let Masked { out, skip, .. } = &self.streams[stream as usize];
        let skipped = out.len().min(*skip);
        if skipped < out.len() {
            self.note(stream, writer.progress().len - skipped as u64);
            let masked = &self.streams[stream as usize];
            if !writer.append(&masked.out[skipped..], stream, now_ms) {
                return false;
            }
        }
        self.streams[stream as usize].stored(skipped);
        true
    }

    /// Writes a checkpoint: what comes out of this stream from now on begins at this offset of the log.
    /// What came before it is not needed any more: only now, because the next program begins there.
    fn note(&mut self, stream: Stream, log_len: u64) {
        let reached = [0, 1].map(|index| self.streams[index].reached);
        let checkpoint = Checkpoint { stream: stream as usize, log_len, reached };
        self.file.iter().for_each(|file| checkpoint::write(file, &checkpoint));
        for Masked { staged, reached, .. } in &mut self.streams {
            staged.give_back(reached.begin);
        }
    }
}

impl Masked {
    fn new(
        patterns: &Arc<Patterns>,
        staged: Option<Entered>,
        reached: Reached,
    ) -> io::Result<Self> {
        let staged = Staged::new(staged, patterns.most_undecided(), reached.begin)?;
        let masker = Masker::resume(Arc::clone(patterns), reached.state);
        Ok(Self { masker, staged, pushed: reached.begin, reached, out: Vec::new(), skip: 0 })
    }

    /// Gives the masker what an earlier program has taken. Returns whether there was something.
    fn push_staged(&mut self, taken: &mut Vec<u8>) -> bool {
        // If it cannot be read now, the next try comes with the next byte.
        let is_some = matches!(self.staged.read(self.pushed, taken), Ok(1..));
        if is_some {
            self.push(taken);
        }
        is_some
    }

    fn push_next(&mut self, pipe: impl AsFd, most: usize, taken: &mut Vec<u8>) -> Pulled {
        let pulled = self.staged.take(pipe, most, taken);
        if let Pulled::Bytes(_) = pulled {
            self.push(taken);
        }
        pulled
    }

    fn push(&mut self, bytes: &[u8]) {
        self.masker.push(bytes, &mut self.out);
        self.pushed += bytes.len() as u64;
    }

    /// Whether the log has more than the masker lets out of what has come: the earlier program has let out
    /// what it held back.
    fn is_ahead(&self) -> bool {
        self.skip > 0 && self.out.is_empty() && self.staged.received() == self.pushed
    }

    /// Lets out what is held back, as an earlier program did: a byte or two at an ending, or everything
    /// at the end of the stream.
    fn let_out(&mut self) {
        self.masker.show_few(&mut self.out);
        if self.out.is_empty() {
            self.masker.finish(&mut self.out);
        }
    }

    /// All that came out is in the log; it had this much of it before.
    fn stored(&mut self, skipped: usize) {
        self.skip -= skipped;
        self.out.clear();
        let begin = self.pushed - self.masker.undecided() as u64;
        self.reached = Reached { begin, state: self.masker.state() };
    }
}
