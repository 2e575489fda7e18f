//! Our terminal, lent to a process: what it writes is shown and remembered, and what it has made of
//! the terminal is undone when the terminal is given back, whatever the reason.

use std::io;

use bytes::{Buf, Bytes};

use super::display::Display;
use super::modes::{Drawing, Modes};
use super::sequences::{Item, Sequences};
use crate::terminal::Raw;

#[derive(Debug)]
pub(crate) struct Lent {
    display: Display,
    /// If every key is to go to the process.
    raw: Option<Raw>,
    wants_raw: bool,
    /// What has come and is not shown yet.
    waiting: Bytes,
    sequences: Sequences,
    modes: Modes,
    /// What was shown last on the usual screen was no newline.
    mid_line: bool,
    given_back: bool,
}

/// Ends a sequence or a string in whose middle the output was left.
const BREAK_OFF: &str = "\x18\x1b\\";

impl Lent {
    pub(crate) fn new(display: Display, wants_raw: bool) -> Self {
        Self {
            display,
            raw: wants_raw.then(Raw::enter).flatten(),
            wants_raw,
            waiting: Bytes::new(),
            sequences: Sequences::default(),
            modes: Modes::default(),
            mid_line: false,
            given_back: false,
        }
    }

    /// To be shown as if the process had written it.
    pub(crate) fn add(&mut self, bytes: impl Into<Bytes>) {
        self.waiting = bytes.into();
    }

    pub(crate) fn has_something_to_show(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Shows some of what is there. Cancel-safe.
    pub(crate) async fn show(&mut self) -> io::Result<()> {
        let count = self.display.write(&self.waiting).await?;
        for byte in &self.waiting[..count] {
            let Some(item) = self.sequences.take(*byte) else { continue };
            self.modes.see(item);
            match item {
                _ if self.modes.drawing() == Drawing::Screen => {}
                Item::Text(_) => self.mid_line = true,
                Item::Control(b'\n') => self.mid_line = false,
                Item::Control(_) | Item::Csi(_) | Item::Escape(_) | Item::String => {}
            }
        }
        self.waiting.advance(count);
        Ok(())
    }

    pub(crate) fn drawing(&self) -> Drawing {
        self.modes.drawing()
    }

    pub(crate) fn is_terminal(&self) -> bool {
        self.display.is_terminal
    }

    pub(crate) fn is_mid_line(&self) -> bool {
        self.mid_line
    }

    /// What the process has made of the terminal is undone behind all that was shown, when there is
    /// room for that.
    pub(crate) fn undo_in_turn(&mut self) {
        if self.display.is_terminal && !self.given_back {
            self.add(self.undoing());
        }
    }

    /// As it was before it was lent, now: for that, a terminal that takes nothing loses what it has
    /// not shown yet.
    pub(crate) fn give_back(&mut self) {
        if self.display.is_terminal && !self.given_back {
            self.display.write_now(self.undoing().as_bytes());
        }
        self.given_back = true;
        self.raw = None;
    }

    fn undoing(&self) -> String {
        let begun = if self.sequences.begun().is_empty() { "" } else { BREAK_OFF };
        format!("{begun}{}", self.modes.turn_off())
    }

    /// As the process believes it to be, after it was given back or somebody else had it.
    pub(crate) fn lend_again(&mut self) {
        match &self.raw {
            Some(raw) => raw.enter_again(),
            None if self.wants_raw => self.raw = Raw::enter(),
            None => {}
        }
        if self.display.is_terminal {
            // Who was stopped without having been asked has not given it back.
            let before = if self.given_back { String::new() } else { self.undoing() };
            let on = self.modes.turn_on();
            // What comes next goes on with the sequence that was broken off.
            let all = [before.as_bytes(), on.as_bytes(), self.sequences.begun()].concat();
            self.display.write_now(&all);
        }
        self.given_back = false;
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.give_back();
    }
}
