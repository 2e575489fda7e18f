//! The accepted input of a command, in a memory file.
//!
//! Its length is how much was accepted, its position how much was written, and it is sealed when the
//! input is to be closed. So its state is whole at every instant, and a program that gets the file
//! after this one was killed goes on with it.
//!
//! A terminal takes bytes only by a copy, and nothing moves the position at the same instant. So the
//! position is moved first: a kill in between loses that write, of at most 4 KiB, but never repeats it.
//! It is noted in the process's slot that it is being typed, so that the next program can report it.
//! The position past the end counts the bytes typed as end of file.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use lastbyte_sys::file::punch_hole;
use lastbyte_sys::registry::{Entered, Purpose, Slot};
use lastbyte_sys::{Errno, memory_file, pipe};

use crate::notes::Notes;

/// As much as a terminal takes at once.
const MOST_TYPED: usize = 4096;
/// How much memory is given back at once: whole pages, of whatever size this machine has.
const STEP: u64 = 64 << 10;

#[derive(Debug)]
pub(super) struct Accepted {
    file: Entered,
    notes: Notes,
    /// The memory up to here is given back.
    freed: u64,
}

/// What a file shows of its input.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shown {
    pub(super) accepted: u64,
    /// How many bytes were written, those of the end of file included.
    pub(super) position: u64,
    pub(super) is_closing: bool,
}

impl Accepted {
    pub(super) fn create(slot: Option<&Arc<Slot>>) -> io::Result<Self> {
        Ok(Self::found(memory_file::create("lastbyte stdin")?, slot))
    }

    /// The file of a queue that is gone.
    pub(super) fn found(file: OwnedFd, slot: Option<&Arc<Slot>>) -> Self {
        let notes = Notes::new(slot.cloned());
        Self { file: Entered::new(file, slot, Purpose::Accepted), notes, freed: 0 }
    }

    pub(super) fn enter(&self) {
        self.file.enter();
    }

    pub(super) fn show(&self) -> io::Result<Shown> {
        let accepted = memory_file::len(&self.file)?;
        let position = memory_file::position(&self.file)?;
        Ok(Shown { accepted, position, is_closing: memory_file::is_sealed(&self.file)? })
    }

    /// Adds to the `accepted` bytes before; all or nothing.
    pub(super) fn append(&self, accepted: u64, bytes: &[u8]) -> Result<(), Errno> {
        memory_file::append(&self.file, accepted, bytes)
    }

    /// No more follows.
    pub(super) fn close(&self) {
        // It fails for no file of ours. If it did, only a take-over would ask for the close again.
        _ = memory_file::seal(&self.file);
    }

    /// Whether the last of the `accepted` bytes is in the middle of a line.
    pub(super) fn ends_mid_line(&self, accepted: u64) -> bool {
        let mut last = [b'\n'];
        let read =
            accepted.checked_sub(1).map(|at| memory_file::read_at(&self.file, &mut last, at));
        read.is_some() && last != *b"\n"
    }

    /// Moves what fits of these next bytes into a pipe.
    pub(super) fn splice_into(&self, pipe: impl AsFd, left: u64) -> Result<usize, Errno> {
        let most = usize::try_from(left).unwrap_or(usize::MAX);
        pipe::splice_from_file(&self.file, pipe, most)
    }

    /// Types some of these bytes, which begin at the position.
    pub(super) fn type_next(
        &self,
        terminal: impl AsFd,
        position: u64,
        left: u64,
    ) -> Result<usize, Errno> {
        let mut bytes = [0; MOST_TYPED];
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(MOST_TYPED);
        let count = memory_file::read_at(&self.file, &mut bytes[..most], position)?;
        self.type_bytes(terminal, position, &bytes[..count])
    }

    /// Types these bytes, which need not be in the file, as those at the position.
    pub(super) fn type_bytes(
        &self,
        terminal: impl AsFd,
        position: u64,
        bytes: &[u8],
    ) -> Result<usize, Errno> {
        self.begin_typing(position, bytes.len())?;
        let typed = pipe::write(terminal, bytes);
        let count = typed.unwrap_or(0);
        if count < bytes.len() {
            memory_file::set_position(&self.file, position + count as u64)?;
        }
        self.notes.note_typing(None);
        typed
    }

    /// The bytes that were just typed.
    pub(super) fn read(&self, at: u64, count: u64) -> Result<Vec<u8>, Errno> {
        let most = usize::try_from(count).unwrap_or(usize::MAX).min(MOST_TYPED);
        let mut bytes = vec![0; most];
        let count = memory_file::read_at(&self.file, &mut bytes, at)?;
        bytes.truncate(count);
        Ok(bytes)
    }

    pub(super) fn begin_typing(&self, position: u64, count: usize) -> Result<(), Errno> {
        self.notes.note_typing(Some(position));
        memory_file::set_position(&self.file, position + count as u64)
    }

    /// From where to where the input may not have arrived: a program was killed while it typed it.
    pub(super) fn uncertain(&self, position: u64) -> Option<(u64, u64)> {
        // Nothing was typed if the position has not moved.
        if let Some(from) = self.notes.typing().filter(|from| *from < position) {
            self.notes.note_uncertain((from, position));
        }
        self.notes.note_typing(None);
        self.notes.uncertain()
    }

    /// Overwrites bytes that were written, except ends of lines: whether a line is whole is asked later.
    pub(super) fn erase(&self, range: Range<u64>) {
        let mut at = range.start;
        while at < range.end {
            let mut bytes = [0; MOST_TYPED];
            let most = usize::try_from(range.end - at).unwrap_or(usize::MAX).min(MOST_TYPED);
            let Ok(count @ 1..) = memory_file::read_at(&self.file, &mut bytes[..most], at) else {
                return;
            };
            let erased = bytes[..count].iter().map(|byte| if *byte == b'\n' { b'\n' } else { 0 });
            // It fails for no file of ours.
            _ = memory_file::write_at(&self.file, &erased.collect::<Vec<u8>>(), at);
            at += count as u64;
        }
    }

    /// The same for the last of the bytes that were typed, as many as are typed at once.
    pub(super) fn erase_last(&self, typed: u64) {
        self.erase(typed.saturating_sub(MOST_TYPED as u64)..typed);
    }

    pub(super) fn notes(&self) -> &Notes {
        &self.notes
    }

    /// Whether giving memory back is worth the effort after this many bytes.
    pub(super) fn has_spare(&self, written: u64) -> bool {
        written - self.freed > STEP
    }

    /// Gives back the memory of bytes that nobody reads any more, and keeps the last byte accepted.
    ///
    /// A pipe refers to the pages of bytes that were spliced into it. Punching zeroes a page in place if
    /// it is not punched as a whole, or is part of a huge page: bytes that are still in the pipe, or
    /// behind them in the same page, would be read as zeros. So `read` does not count bytes in the pipe.
    pub(super) fn give_back(&mut self, read: u64, accepted: u64) {
        let end = read.min(accepted.saturating_sub(1));
        let end = end - end % STEP;
        // If it fails, the next time gives back more.
        if end > self.freed && punch_hole(&self.file, self.freed, end - self.freed).is_ok() {
            self.freed = end;
        }
    }
}
