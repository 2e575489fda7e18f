//! Output on its way from a pipe to a masker.
//!
//! With a keeper, it is spliced into a memory file first, which outlives this program: a byte is either
//! in the pipe or in the file. The file is a ring, because new pages cost more than all the rest. Its
//! position tells how much has come: less than one round since the last checkpoint. Without a keeper
//! nothing outlives this program anyway, and the bytes are read as they are.

use std::os::fd::AsFd;

use lastbyte_output::log::Pulled;
use lastbyte_sys::registry::Entered;
use lastbyte_sys::{Errno, memory_file, pipe};

/// The most to take at once: buffers of this size stay in the processor's cache.
const MOST: usize = 64 << 10;
/// The smallest ring: it stays in the processor's cache, too.
const LEAST_RING: usize = 256 << 10;
/// Buffers of a stream that brings less at once are given back.
const LITTLE: usize = 4 << 10;

#[derive(Debug)]
pub(super) struct Staged {
    file: Option<Entered>,
    /// The length of the ring.
    ring: u64,
    /// How much has come, if there is a file.
    received: u64,
    /// What came before this is not needed any more.
    needed: u64,
}

impl Staged {
    /// For a masker that holds back at most this much, from what the last checkpoint says on.
    pub(super) fn new(file: Option<Entered>, most_held: usize, needed: u64) -> Result<Self, Errno> {
        let ring = (most_held + 2 * MOST).next_power_of_two().max(LEAST_RING) as u64;
        let position = file.as_ref().map_or(Ok(needed), memory_file::position)?;
        let since = (position % ring + ring - needed % ring) % ring;
        Ok(Self { file, ring, received: needed + since, needed })
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
            Some(file) => self.splice(pipe, file, most).and_then(|count| {
                self.received += count as u64;
                self.read(self.received - count as u64, into)
            }),
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

    /// Up to the end of the ring, and over nothing that is needed.
    fn splice(&self, pipe: impl AsFd, file: &Entered, most: usize) -> Result<usize, Errno> {
        let (at, kept) = (self.received % self.ring, self.received - self.needed);
        // A full ring would look like an empty one.
        let room = (self.ring - 1 - kept).min(self.ring - at);
        if room == 0 {
            return Err(Errno::NOBUFS);
        }
        if at == 0 {
            memory_file::set_position(file, 0)?;
        }
        pipe::splice_to_position(pipe, file, most.min(usize::try_from(room).unwrap_or(most)))
    }

    /// Reads some of what has come from this offset on.
    pub(super) fn read(&self, from: u64, into: &mut Vec<u8>) -> Result<usize, Errno> {
        let Some(file) = &self.file else { return Ok(0) };
        let count = usize::try_from(self.received - from).unwrap_or(usize::MAX).min(MOST);
        make_room(count, into);
        let mut done = 0;
        while done < count {
            let at = (from + done as u64) % self.ring;
            let most = usize::try_from(self.ring - at).unwrap_or(usize::MAX).min(count - done);
            match memory_file::read_at(file, &mut into[done..done + most], at)? {
                0 => return Err(Errno::IO),
                read => done += read,
            }
        }
        Ok(count)
    }

    /// Nobody needs what came before this offset.
    pub(super) fn give_back(&mut self, before: u64) {
        self.needed = before;
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
