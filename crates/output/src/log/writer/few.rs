//! While a log is short: bytes are copied to whoever keeps them, and there is no file.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use lastbyte_sys::Errno;

use super::{Pulled, Store, Writer, errno_of, read_ready};
use crate::log::short::{MOST_BYTES, MOST_PIECES};
use crate::log::{Keep, ShortLog, Stream};

/// Who keeps the next bytes of a short log, and how long.
#[derive(Debug)]
pub(super) struct Keeping {
    keep: Arc<dyn Keep>,
    /// How many more pieces it takes.
    pieces: usize,
}

impl Keeping {
    pub(super) fn new(keep: Arc<dyn Keep>) -> Self {
        Self { keep, pieces: MOST_PIECES }
    }
}

impl Writer {
    /// Appends to a short log. `None` when the next byte needs a file.
    pub(super) fn pull_few(
        &mut self,
        pipe: impl AsFd,
        stream: Stream,
        most: usize,
        now_ms: u64,
    ) -> Option<Pulled> {
        let room = self.room_without_file().min(most);
        if room == 0 {
            return None;
        }
        let mut few = [0; MOST_BYTES];
        let count = match read_ready(pipe, &mut few[..room]) {
            Ok(count) => count,
            Err(pulled) => return Some(pulled),
        };
        let bytes = &few[..count];
        if !self.keep(bytes, stream, now_ms) {
            // They are out of the pipe: now or never.
            if let Err(error) = self.write(bytes, stream, now_ms) {
                self.fail(errno_of(&error));
                self.append_to_memory(bytes, stream, now_ms);
            }
        }
        Some(Pulled::Bytes(count))
    }

    fn room_without_file(&self) -> usize {
        let Store::NoFile(Some(keeping)) = &self.store else { return 0 };
        match keeping.pieces {
            0 => 0,
            _ => MOST_BYTES.saturating_sub(usize::try_from(self.len).unwrap_or(usize::MAX)),
        }
    }

    /// Whether somebody keeps these bytes, who then follow the others of the short log.
    fn keep(&mut self, bytes: &[u8], stream: Stream, now_ms: u64) -> bool {
        let Store::NoFile(Some(keeping)) = &mut self.store else { return false };
        let stamp = self.stamps.due(self.len, stream, now_ms);
        let more = ShortLog { bytes: bytes.to_vec(), stamps: stamp.into_iter().collect() };
        if !keeping.keep.keep(&more) {
            return false;
        }
        keeping.pieces -= 1;
        stamp.into_iter().for_each(|stamp| self.stamps.tell(stamp));
        self.shared.short.append(&more);
        self.len += bytes.len() as u64;
        true
    }

    fn write(&mut self, bytes: &[u8], stream: Stream, now_ms: u64) -> io::Result<()> {
        self.open(stream, now_ms)?;
        let Store::Disk(log) = &self.store else { return Err(Errno::BADF.into()) };
        log.write_all_at(bytes, self.len)?;
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// Makes the file, with what the log had before there was one.
    pub(super) fn move_into_file(&mut self) -> io::Result<File> {
        let file = self.create()?;
        if let Some(short) = self.shared.short.whole() {
            file.write_all_at(&short.bytes, 0)?;
            self.stamps.write_down(&self.place, &short.stamps)?;
        }
        if let Store::NoFile(Some(keeping)) = &self.store {
            keeping.keep.moved();
        }
        self.shared.short.moved();
        Ok(file)
    }
}
