//! Where output goes: into the log, through a masker if the launch has secrets.

use std::os::fd::AsFd;
use std::time::SystemTime;

use lastbyte_output::log::{Pulled, Stream, Writer};

use super::masking::Masking;
use crate::clock::unix_ms;

#[derive(Debug)]
pub(super) struct Sink {
    pub(super) writer: Writer,
    masking: Option<Box<Masking>>,
}

impl Sink {
    /// Stores what an earlier worker had not masked yet.
    pub(super) fn new(mut writer: Writer, mut masking: Option<Box<Masking>>) -> Self {
        masking.iter_mut().for_each(|masking| masking.catch_up(&mut writer, now_ms()));
        Self { writer, masking }
    }

    /// Into a slot that is about to be ours.
    pub(super) fn enter(&self) {
        self.masking.iter().for_each(|masking| masking.enter());
    }

    /// Stores at most `most` bytes that are ready in `pipe`, or holds them back.
    pub(super) fn pull(&mut self, pipe: impl AsFd, stream: Stream, most: usize) -> Pulled {
        match &mut self.masking {
            None => self.writer.pull(pipe, stream, most, now_ms()),
            Some(masking) => masking.pull(&mut self.writer, pipe, (stream, most), now_ms()),
        }
    }

    /// The stream is at its end. Stores what is held back of it; `Pulled::End` if that is nothing.
    pub(super) fn close(&mut self, stream: Stream) -> Pulled {
        let Some(masking) = &mut self.masking else { return Pulled::End };
        match masking.close(&mut self.writer, stream, now_ms()) {
            0 => Pulled::End,
            count => Pulled::Bytes(count),
        }
    }

    /// The output has ended, although others may hold it open. Returns how many secrets were masked.
    pub(super) fn end(&mut self) -> u64 {
        let Some(masking) = &mut self.masking else { return 0 };
        masking.end(&mut self.writer, now_ms());
        masking.masked()
    }
}

fn now_ms() -> u64 {
    unix_ms(SystemTime::now())
}
