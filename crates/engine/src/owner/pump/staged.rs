//! Output on its way from a pipe to a masker.
//!
//! With a keeper, it is spliced into a memory file first, which outlives this program: a byte is either
//! in the pipe or in the file. Its length is how much has come. Without one nothing outlives this program
//! anyway, and the bytes are read as they are.

use std::os::fd::AsFd;

use lastbyte_output::log::Pulled;
use lastbyte_sys::file::punch_hole;
use lastbyte_sys::registry::Entered;
use lastbyte_sys::{Errno, memory_file, pipe};

/// The most to take at once: buffers of this size stay in the processor's cache.
const MOST: usize = 64 << 10;
/// How much memory is given back at once.
const STEP: u64 = 256 << 10;
/// Buffers of a stream that brings less at once are given back.
const LITTLE: usize = 4 << 10;

#[derive(Debug, Default)]
pub(super) struct Staged {
    file: Option<Entered>,
    /// How much has come, if there is a file.
    received: u64,
    /// The memory of the file up to here is given back.
    freed: u64,
}

impl Staged {
    pub(super) fn new(file: Option<Entered>) -> Result<Self, Errno> {
        let received = file.as_ref().map_or(Ok(0), memory_file::len)?;
        Ok(Self { file, received, freed: 0 })
    }

    pub(super) fn enter(&self) {
        self.file.iter().for_each(Entered::enter);
    }

    /// How much has come, if it outlives this program.
    pub(super) fn received(&self) -> u64 {
        self.received
    }

    /// Takes what is ready in the pipe, as bytes in `into`.
    pub(super) fn take(&mut self, pipe: impl AsFd, most: usize, into: &mut Vec<u8>) -> Pulled {
        let most = most.min(MOST);
        let taken = match &self.file {
            None => read(pipe, most, into),
            Some(file) => {
                let taken = pipe::splice_into_file(pipe, file, self.received, most);
                taken.and_then(|count| {
                    self.received += count as u64;
                    self.read(self.received - count as u64, into)
                })
            }
        };
        match taken {
            Ok(0) => Pulled::End,
            Ok(count) => Pulled::Bytes(count),
            Err(Errno::AGAIN) => Pulled::Nothing,
            // A pipe that cannot be read is at its end; one that cannot be spliced waits for memory.
            Err(_) if self.file.is_none() => Pulled::End,
            Err(_) => Pulled::NotNow,
        }
    }

    /// Reads some of what has come from this offset on.
    pub(super) fn read(&self, from: u64, into: &mut Vec<u8>) -> Result<usize, Errno> {
        let Some(file) = &self.file else { return Ok(0) };
        let count = usize::try_from(self.received - from).unwrap_or(usize::MAX).min(MOST);
        make_room(count, into);
        let mut done = 0;
        while done < count {
            match memory_file::read_at(file, &mut into[done..], from + done as u64)? {
                0 => return Err(Errno::IO),
                read => done += read,
            }
        }
        Ok(count)
    }

    /// Nobody needs what came before this offset.
    pub(super) fn give_back(&mut self, before: u64) {
        let end = before - before % STEP;
        let Some(file) = self.file.as_ref().filter(|_| end > self.freed) else { return };
        // If it fails, the next time gives back more.
        if punch_hole(file, self.freed, end - self.freed).is_ok() {
            self.freed = end;
        }
    }
}

fn read(pipe: impl AsFd, most: usize, into: &mut Vec<u8>) -> Result<usize, Errno> {
    let ready = usize::try_from(pipe::ready(&pipe)?).unwrap_or(usize::MAX);
    make_room(ready.clamp(1, most), into);
    let read = pipe::read(pipe, into);
    into.truncate(read.unwrap_or(0));
    read
}

fn make_room(count: usize, into: &mut Vec<u8>) {
    if count <= LITTLE && into.capacity() > LITTLE {
        *into = Vec::new();
    }
    into.resize(count, 0);
}
