//! Writing to a command: a bounded queue that never blocks.
//!
//! A write beyond the limit is refused at once. Bytes that were accepted before take no space.
//! Repeating them gets the same answer, whatever happened to the command since. The owner writes one
//! piece at a time between its other work, so a command that reads nothing delays no timeout, signal
//! or reader. What is accepted is in a memory file, and a queue can be made of one: no byte is lost or
//! repeated, whenever the program of the last queue was killed (`accepted` has the one exception).

mod accepted;
mod secret;
#[cfg(test)]
mod tests;

use std::future::pending;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use lastbyte_sys::readiness::{self, Interest};
use lastbyte_sys::registry::{Entered, Purpose, Slot};
use lastbyte_sys::{Errno, pipe, pty};
use tokio::io::unix::AsyncFd;
use tokio::sync::{oneshot, watch};

use accepted::{Accepted, Shown};
use secret::{Next, SecretInput, TypedLine};

/// Up to 16 MiB may wait for a command that does not read.
pub(crate) const QUEUE_BYTES: usize = 16 << 20;

/// The progress of standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StdinState {
    /// How many bytes were accepted, and whether they are the last.
    accepted: u64,
    then: Then,
    /// How many bytes the command's pipe has taken.
    pub written: u64,
    /// From where to where bytes may not have arrived at a terminal, because this program was killed
    /// while it typed them. They are not typed again. Those past the accepted ones are the end of file.
    pub uncertain: Option<(u64, u64)>,
    pub open: StdinOpen,
}

/// Whether more can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StdinOpen {
    Open,
    /// Closed by us, or by the leader's exit: the command reads end of file.
    Closed,
    /// The command closed its end; the queued bytes are lost.
    Broken,
}

/// A write was queued. `accepted` is the offset at which the next one begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    pub accepted: u64,
}

/// Why a write was not queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    #[error("the command was started without standard input")]
    NotOpen,
    #[error("standard input is already closed")]
    Closed,
    #[error("the command has closed its standard input")]
    Broken,
    #[error("the process has ended")]
    Exited,
    #[error("{bytes} bytes do not fit into the input queue, which has room for {room}")]
    QueueFull { bytes: usize, room: usize },
    #[error("another client has the keyboard")]
    KeyboardTaken,
    #[error("a write at offset {given} leaves a gap: {expected} bytes were accepted so far")]
    Gap { given: u64, expected: u64 },
}

/// What to do with standard input after the bytes of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    KeepOpen,
    Close,
}

/// A write sent to the owner.
#[derive(Debug)]
pub(crate) struct Write {
    pub(crate) bytes: Vec<u8>,
    /// Where in the input these bytes belong; `None` appends them.
    pub(crate) offset: Option<u64>,
    pub(crate) then: Then,
    /// It must not be shown, nor kept.
    pub(crate) secret: bool,
    pub(crate) reply: oneshot::Sender<Result<Written, WriteError>>,
}

/// The caller's side: watches progress, and knows what was accepted after the owner's side is gone.
#[derive(Debug, Clone)]
pub(crate) struct StdinGate {
    pub(crate) state: watch::Receiver<StdinState>,
}

/// The owner's side.
#[derive(Debug)]
pub(crate) struct StdinQueue {
    /// Our end of the command's pipe or terminal. `None` once it is closed or broken.
    end: Option<AsyncFd<Entered>>,
    accepted: Accepted,
    end_of_file: EndOfFile,
    /// Which of the bytes that mean end of file are still to be typed, once the input is closing.
    to_type: Range<u64>,
    secret: SecretInput,
    state: watch::Sender<StdinState>,
}

/// How the command learns that no more input comes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum EndOfFile {
    /// Close the pipe.
    Close,
    /// Type this byte: a terminal has no other way.
    Type(u8),
}

impl StdinGate {
    /// The answer to a write after the exit: only a repetition of accepted bytes succeeds.
    pub(crate) fn answer_late(
        &self,
        offset: Option<u64>,
        len: usize,
        then: Then,
    ) -> Result<Written, WriteError> {
        let state = *self.state.borrow();
        match state.known(offset, len) {
            Ok(known) if state.is_repeated(known, len, then) => Ok(state.answer()),
            Ok(_) | Err(_) => Err(WriteError::Exited),
        }
    }
}

impl StdinState {
    /// How many of the bytes at this offset were accepted before.
    fn known(self, offset: Option<u64>, len: usize) -> Result<usize, WriteError> {
        let expected = self.accepted;
        let given = offset.unwrap_or(expected);
        let known = expected.checked_sub(given).ok_or(WriteError::Gap { given, expected })?;
        Ok(usize::try_from(known).unwrap_or(usize::MAX).min(len))
    }

    /// Whether a write adds nothing to what was accepted, neither bytes nor a close.
    fn is_repeated(self, known: usize, len: usize, then: Then) -> bool {
        known == len
            && match then {
                Then::KeepOpen => len > 0,
                Then::Close => self.then == Then::Close,
            }
    }

    /// How many bytes are in the queue.
    fn left(self) -> usize {
        usize::try_from(self.accepted - self.written).unwrap_or(usize::MAX)
    }

    fn answer(self) -> Written {
        Written { accepted: self.accepted }
    }
}

impl StdinQueue {
    pub(crate) fn new(
        end: OwnedFd,
        end_of_file: EndOfFile,
        slot: Option<&Arc<Slot>>,
    ) -> io::Result<(Self, StdinGate)> {
        Self::with(Some(end), Accepted::create(slot)?, end_of_file, slot)
    }

    /// Goes on with the input in this file, whose queue is gone. Without an end, that queue had closed
    /// it, or the command had.
    pub(crate) fn resume(
        end: Option<OwnedFd>,
        accepted: OwnedFd,
        end_of_file: EndOfFile,
        slot: Option<&Arc<Slot>>,
    ) -> io::Result<(Self, StdinGate)> {
        let accepted = Accepted::found(accepted, slot);
        let Shown { accepted: len, position, is_closing } = accepted.show()?;
        let uncertain = accepted.uncertain(position);
        let noted = accepted.notes().secret();
        let (mut queue, gate) = Self::with(end, accepted, end_of_file, slot)?;
        queue.secret = SecretInput::found(noted, position.min(len)..len);
        if let (true, EndOfFile::Type(_)) = (noted.has_input, end_of_file) {
            // That queue may have typed a piece and not erased it yet.
            queue.accepted.erase_last(position.min(len));
        }
        queue.state.send_modify(|state| {
            (state.accepted, state.written) = (len, position.min(len));
            state.uncertain = uncertain;
        });
        if is_closing {
            queue.close_behind(position - position.min(len));
        }
        if queue.end.is_none() {
            let how = if queue.is_done() { StdinOpen::Closed } else { StdinOpen::Broken };
            queue.close(how);
        }
        Ok((queue, gate))
    }

    fn with(
        end: Option<OwnedFd>,
        accepted: Accepted,
        end_of_file: EndOfFile,
        slot: Option<&Arc<Slot>>,
    ) -> io::Result<(Self, StdinGate)> {
        let (then, open) = (Then::KeepOpen, StdinOpen::Open);
        let state = StdinState { accepted: 0, then, written: 0, uncertain: None, open };
        let (state, watched) = watch::channel(state);
        let end = end.map(|end| Entered::new(end, slot, Purpose::Input));
        let end = end.map(|end| readiness::watch(end, Interest::WRITABLE)).transpose()?;
        Ok((
            Self {
                end,
                accepted,
                end_of_file,
                to_type: 0..0,
                secret: SecretInput::default(),
                state,
            },
            StdinGate { state: watched },
        ))
    }

    /// Enters what is open into a slot that is about to be ours.
    pub(crate) fn enter(&self) {
        self.accepted.enter();
        self.end.iter().for_each(|end| end.get_ref().enter());
    }

    /// Queues the whole input of the command.
    pub(crate) fn give(&mut self, input: &[u8]) -> Result<Written, WriteError> {
        self.accept(input, Some(0), Then::Close)
    }

    /// Queues a write and answers it.
    pub(crate) fn take(&mut self, write: Write) {
        let Write { bytes, offset, then, secret, reply } = write;
        // The caller may have gone away.
        _ = reply.send(self.accept_as(secret, &bytes, offset, then));
    }

    fn accept(
        &mut self,
        bytes: &[u8],
        offset: Option<u64>,
        then: Then,
    ) -> Result<Written, WriteError> {
        self.accept_as(false, bytes, offset, then)
    }

    /// Bytes of an earlier write are not queued again and need no space.
    fn accept_as(
        &mut self,
        secret: bool,
        bytes: &[u8],
        offset: Option<u64>,
        then: Then,
    ) -> Result<Written, WriteError> {
        let known = self.check(offset, bytes.len(), then)?;
        let fresh = &bytes[known..];
        if !fresh.is_empty() {
            self.append(fresh, secret)?;
        }
        if then == Then::Close && self.state.borrow().then == Then::KeepOpen {
            self.accepted.close();
            self.close_behind(0);
        }
        Ok(self.state.borrow().answer())
    }

    /// How many of the bytes are already accepted, or why the write is refused.
    fn check(&self, offset: Option<u64>, len: usize, then: Then) -> Result<usize, WriteError> {
        let state = *self.state.borrow();
        let known = state.known(offset, len)?;
        // A repetition of accepted bytes, or of the close, always succeeds.
        if state.is_repeated(known, len, then) {
            return Ok(known);
        }
        match state.open {
            StdinOpen::Broken => Err(WriteError::Broken),
            StdinOpen::Open if state.then == Then::KeepOpen => Ok(known),
            StdinOpen::Open | StdinOpen::Closed => Err(WriteError::Closed),
        }
    }

    /// Adds these bytes if there is room for them, or reports how much there is.
    fn append(&mut self, fresh: &[u8], secret: bool) -> Result<(), WriteError> {
        let state = *self.state.borrow();
        let full = |room| WriteError::QueueFull { bytes: fresh.len(), room };
        let room = QUEUE_BYTES.saturating_sub(state.left());
        if fresh.len() > room {
            return Err(full(room));
        }
        if secret {
            self.secret.add(state.accepted..state.accepted + fresh.len() as u64);
            self.secret.note(self.accepted.notes());
        }
        // The kernel has no memory for them, or a file may not be that long.
        self.accepted.append(state.accepted, fresh).map_err(|_| full(0))?;
        self.state.send_modify(|state| state.accepted += fresh.len() as u64);
        Ok(())
    }

    /// Closes the input after what is queued. So many bytes were typed as end of file before.
    fn close_behind(&mut self, typed: u64) {
        self.state.send_modify(|state| state.then = Then::Close);
        if let EndOfFile::Type(_) = self.end_of_file {
            // In the middle of a line, the first one only submits the line.
            let mid_line = self.accepted.ends_mid_line(self.state.borrow().accepted);
            self.to_type = typed..if mid_line { 2 } else { 1 };
        }
        self.close_if_done();
    }

    /// Writes a piece when the command's pipe has space. Waits forever if there is nothing to
    /// write. Cancel-safe: progress is kept in the queue.
    pub(crate) async fn step(&mut self) {
        let Some(end) = self.end.as_ref().filter(|_| self.has_more()) else {
            return pending().await;
        };
        let Ok(mut ready) = end.writable().await else { return pending().await };
        if let EndOfFile::Type(_) = self.end_of_file {
            let is_secret = matches!(self.next(), Next::Secret(_));
            if is_secret || self.secret.line.has_secret {
                // The program may have told the terminal since to show what is typed.
                self.secret.is_hidden |= matches!(pty::hide_typing(end), Ok(true));
                // Noted before it is typed: the next program cannot know how far this one came.
                self.secret.line.has_secret = true;
                self.secret.note(self.accepted.notes());
            }
        }
        match self.write_next(end.get_ref()) {
            Err(Errno::AGAIN) => ready.clear_ready(),
            Ok(count) if count > 0 => self.wrote(count as u64),
            Ok(_) | Err(_) => self.close(StdinOpen::Broken),
        }
    }

    /// Our end of the command's pipe or terminal, as long as it is open.
    pub(crate) fn end(&self) -> Option<BorrowedFd<'_>> {
        self.end.as_ref().map(AsFd::as_fd)
    }

    /// Whether something is still to be written.
    pub(crate) fn has_more(&self) -> bool {
        self.state.borrow().left() > 0 || !self.to_type.is_empty()
    }

    fn write_next(&self, end: &Entered) -> Result<usize, Errno> {
        let StdinState { accepted, written, .. } = *self.state.borrow();
        let left = accepted - written;
        if left > 0 {
            return self.write_some(end, written, left);
        }
        match self.end_of_file {
            EndOfFile::Close => self.accepted.splice_into(end, left),
            EndOfFile::Type(byte) => {
                let bytes: Vec<u8> = self.to_type.clone().map(|_| byte).collect();
                self.accepted.type_bytes(end, accepted + self.to_type.start, &bytes)
            }
        }
    }

    /// Up to the next secret, or some of it. A secret is copied, also into a pipe: what is spliced into
    /// one cannot be erased before it is read.
    fn write_some(&self, end: &Entered, written: u64, left: u64) -> Result<usize, Errno> {
        match (self.secret.next(written), self.end_of_file) {
            (Next::Plain(most), EndOfFile::Close) => self.accepted.splice_into(end, left.min(most)),
            (Next::Plain(most), EndOfFile::Type(_)) | (Next::Secret(most), _) => {
                self.accepted.type_next(end, written, left.min(most))
            }
        }
    }

    /// Switches secret input on or off; on, the terminal does not show what is typed.
    pub(crate) fn set_secret(&mut self, on: bool) -> Result<(), Errno> {
        if let (true, EndOfFile::Type(_), Some(end)) = (on, self.end_of_file, &self.end) {
            self.secret.is_hidden |= pty::hide_typing(end)?;
        }
        self.secret.is_on = on;
        self.secret.note(self.accepted.notes());
        Ok(())
    }

    /// Whether the terminal is to show again what is typed.
    pub(crate) fn owes_echo(&self) -> bool {
        self.secret.is_hidden && self.secret.is_over()
    }

    /// Whether secret input was switched off and something of it is left to do.
    pub(crate) fn has_secret(&self) -> bool {
        self.secret.is_hidden && !self.secret.is_on
    }

    /// It does, or is gone.
    pub(crate) fn echo_is_back(&mut self) {
        self.secret.is_hidden = false;
        self.secret.line = TypedLine::default();
        self.secret.note(self.accepted.notes());
    }

    fn next(&self) -> Next {
        self.secret.next(self.state.borrow().written)
    }

    /// Whether the line that is being typed has something secret, after this many more bytes.
    fn follow_line(&mut self, count: u64) {
        if !self.secret.line.has_secret {
            return;
        }
        let Some(end) = &self.end else { return };
        let is_secret = matches!(self.next(), Next::Secret(_));
        let written = self.state.borrow().written;
        if let (Ok(keys), Ok(bytes)) = (pty::line_keys(end), self.accepted.read(written, count)) {
            self.secret.line.typed(&bytes, is_secret, keys.as_ref());
            self.secret.note(self.accepted.notes());
        }
    }

    /// Whether the terminal has a secret in a line that has not ended, which it could show again.
    pub(crate) fn has_secret_line(&self) -> bool {
        let keys = |end| pty::line_keys(end).ok().flatten();
        self.secret.line.has_secret && self.end.as_ref().and_then(keys).is_some()
    }

    fn erase_secret(&mut self, count: u64) {
        if let Next::Secret(_) = self.next() {
            let written = self.state.borrow().written;
            self.accepted.erase(written..written + count);
            self.secret.written(written + count);
            self.secret.note(self.accepted.notes());
        }
    }

    fn wrote(&mut self, count: u64) {
        if self.state.borrow().left() > 0 {
            self.follow_line(count);
            self.erase_secret(count);
            self.state.send_modify(|state| state.written += count);
            self.give_back();
        } else {
            self.to_type.start += count;
            self.secret.line = TypedLine::default();
            self.secret.note(self.accepted.notes());
        }
        self.close_if_done();
    }

    /// Gives back the memory of what the command has read.
    fn give_back(&mut self) {
        let StdinState { accepted, written, .. } = *self.state.borrow();
        let Some(end) = self.end.as_ref().filter(|_| self.accepted.has_spare(written)) else {
            return;
        };
        let unread = match self.end_of_file {
            EndOfFile::Close => pipe::ready(end.get_ref()).unwrap_or(u64::MAX),
            EndOfFile::Type(_) => 0,
        };
        self.accepted.give_back(written.saturating_sub(unread), accepted);
    }

    fn close_if_done(&mut self) {
        if self.is_done() && self.end.is_some() {
            self.close(StdinOpen::Closed);
        }
    }

    fn is_done(&self) -> bool {
        self.state.borrow().then == Then::Close && !self.has_more()
    }

    /// The file stays: it shows how the input was closed.
    fn close(&mut self, how: StdinOpen) {
        self.end = None;
        self.to_type = 0..0;
        self.state.send_modify(|state| state.open = how);
        if how == StdinOpen::Broken {
            let accepted = self.state.borrow().accepted;
            self.accepted.give_back(accepted, accepted);
        }
    }
}

impl Drop for StdinQueue {
    /// The leader has exited, so no more is written.
    fn drop(&mut self) {
        if self.end.is_some() {
            self.close(StdinOpen::Closed);
        }
    }
}
