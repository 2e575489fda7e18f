//! The beginning and the end of a conversation, on this side.

use anyhow::Context;
use lastbyte_client::Client;
use rustix::stdio::{stderr, stdout};
use rustix::termios::isatty;

use super::begin::Begin;
use super::conversation::{Conversation, left};
use super::detach_key::Keys;
use super::display::Display;
use super::input::{self, Pass, Source};
use super::lent::Lent;
use super::outgoing::Outgoing;
use super::window::Window;
use crate::signals::Signals;
use crate::tell;

/// What of ours the process gets.
#[derive(Debug)]
pub(crate) struct Wanted {
    /// Every key, if our terminal is to be passed through.
    pub(crate) keys: Option<Keys>,
    pub(crate) pass: Pass,
    /// Whether it is told the size of our window.
    pub(crate) tell_size: bool,
}

impl<'a> Conversation<'a> {
    /// Must be called on a runtime.
    pub(crate) fn open(
        client: &'a Client,
        id: &'a str,
        wanted: Wanted,
    ) -> anyhow::Result<(Self, Outgoing)> {
        // Before anything is lent that a deadly signal would leave so.
        let signals = Signals::listen().context("cannot listen for signals")?;
        let (window, sizes) = Window::listen().context("cannot listen for signals")?;
        let lent = Lent::new(Display::open(), wanted.keys.is_some());
        let by_a_key = wanted.keys.is_some();
        let source = wanted.keys.map_or(Source::Stream, Source::Keys);
        let (input, left) = input::start(source, wanted.pass)
            .context("cannot start a thread for standard input")?;
        let left = by_a_key.then_some(left);
        let own = Self { client, id, lent, window, signals, left, dropped: 0, refused: None };
        Ok((own, Outgoing::new(input, wanted.tell_size.then_some(sizes))))
    }

    /// Shows what was before, and has the process show what it is at.
    pub(crate) fn begin(&mut self, begin: Begin) {
        self.lent.add(begin.shown);
        self.window.tell_size_anew(begin.drawing);
    }

    /// Waits until the terminal has room for what undoes all that the process has made of it; whoever
    /// leaves meanwhile does not wait.
    pub(crate) async fn let_all_be_seen(&mut self) {
        self.lent.undo_in_turn();
        while self.lent.has_something_to_show() {
            tokio::select! {
                biased;
                _ = left(&mut self.left) => return,
                _ = self.signals.next() => return,
                // A terminal that is gone shows nothing.
                shown = self.lent.show() => if shown.is_err() { return },
            }
        }
    }

    /// Gives the terminal back, and tells what is missing of the conversation.
    pub(crate) fn finish(&mut self) {
        self.lent.give_back();
        if self.lent.is_mid_line() && isatty(stdout()) && isatty(stderr()) {
            tell::after_a_partial_line();
        }
        if self.dropped > 0 {
            let count = self.dropped;
            tell::line(format_args!("{count} bytes of output were dropped before they were shown"));
        }
        if let Some(why) = &self.refused {
            tell::line(format_args!("something that was sent was refused: {why}"));
        }
    }
}
