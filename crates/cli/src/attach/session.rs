//! An attached session: shows what the process writes and sends what is typed, until either side
//! ends it.

use std::io;
use std::ops::ControlFlow;
use std::pin::{Pin, pin};
use std::time::Duration;

use anyhow::Context;
use lastbyte_client::wire::{AttachNotice, Ending, ErrorCode};
use lastbyte_client::{Attached, AttachedReader, AttachedWriter, Client, ClientError, FromProcess};
use lastbyte_engine::Signal;
use rustix::io::Errno;
use rustix::stdio::{stderr, stdout};
use rustix::termios::isatty;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::detach_key::Keys;
use super::input::{self, Pass};
use super::outgoing::Outgoing;
use super::reconnect::Reconnect;
use super::replay::InitialOutput;
use super::terminal_guard::TerminalGuard;
use super::window::{Window, WindowEvent, stop_self};
use crate::server_args::RECONNECTED;
use crate::signals::Signals;
use crate::{format, print, stdio};

/// This side of it.
#[derive(Debug)]
pub(crate) struct Session<'a> {
    reconnect: Reconnect<'a>,
    terminal: TerminalGuard,
    window: Window,
    signals: Signals,
    /// `None` if there is no detach key.
    left: Option<oneshot::Receiver<SessionEnd>>,
    /// How many bytes were dropped before they could be shown.
    dropped: u64,
    /// What the server said last of something that it did not do.
    refused: Option<String>,
    /// A connection was lost and made again, and nothing was said yet.
    reconnected: bool,
}

/// How the session ended.
#[derive(Debug)]
pub(crate) enum SessionEnd {
    Detached,
    /// Nobody reads our standard output.
    ReaderGone,
    Interrupted(Signal),
    Ended(Box<Ending>),
}

/// How long to wait on detach until the server has taken the last input.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

impl Session<'_> {
    /// Reconnects when a connection breaks.
    pub(crate) async fn until_end(
        &mut self,
        mut attached: Attached,
        outgoing: &mut Outgoing,
    ) -> anyhow::Result<SessionEnd> {
        loop {
            outgoing.begin(attached.accepted);
            let cursor = match self.run_connection(attached, outgoing).await? {
                ControlFlow::Break(end) => return Ok(end),
                ControlFlow::Continue(cursor) => cursor,
            };
            attached = tokio::select! {
                // A server that does not answer can be left like any other.
                end = left(&mut self.left) => return Ok(end),
                signal = self.signals.next() => return Ok(SessionEnd::Interrupted(signal)),
                attached = self.reconnect.attach(cursor, outgoing.expected) => attached?,
            };
            self.tell_reconnected();
        }
    }

    /// Continues at the cursor before which all is shown, if the connection broke.
    async fn run_connection(
        &mut self,
        attached: Attached,
        outgoing: &mut Outgoing,
    ) -> anyhow::Result<ControlFlow<SessionEnd, u64>> {
        let Attached { mut reader, writer, .. } = attached;
        let mut sending = pin!(outgoing.send(writer));
        let mut reader_gone = pin!(stdio::stdout_reader_gone());
        let mut sends = true;
        let end = loop {
            tokio::select! {
                // What ends it comes first, however much there is to show.
                biased;
                end = left(&mut self.left) => {
                    // Restores the terminal before waiting for anything.
                    self.terminal.restore();
                    self.window.close();
                    if sends {
                        flush_input(sending, reader).await;
                    }
                    break end;
                }
                signal = self.signals.next() => break SessionEnd::Interrupted(signal),
                event = self.window.next() => self.react(event),
                () = &mut reader_gone, if !self.terminal.is_terminal() => break SessionEnd::ReaderGone,
                // What the server said before it stopped listening is still to be read.
                _ = &mut sending, if sends => sends = false,
                shown = self.terminal.show(), if self.terminal.has_output() => {
                    if let Some(end) = end_if_closed(shown)? {
                        break end;
                    }
                }
                came = reader.next(), if !self.terminal.has_output() => match came {
                    Ok(Some(came)) => if let Some(ending) = self.take(came) {
                        break SessionEnd::Ended(ending);
                    },
                    Ok(None) | Err(_) => return Ok(ControlFlow::Continue(reader.cursor())),
                },
            }
        };
        Ok(ControlFlow::Break(end))
    }

    /// At once, or, as that would spoil what is on a terminal, in the end.
    fn tell_reconnected(&mut self) {
        if self.terminal.is_terminal() {
            self.reconnected = true;
        } else {
            print::message(RECONNECTED);
        }
    }

    fn react(&mut self, event: WindowEvent) {
        match event {
            WindowEvent::Resized => self.window.send_size(),
            WindowEvent::Stopped => {
                self.terminal.restore();
                stop_self();
            }
            WindowEvent::Continued => {
                self.terminal.reapply();
                self.window.resend_size(self.terminal.drawing());
            }
        }
    }

    /// What the server sends; the ending is the last.
    fn take(&mut self, came: FromProcess) -> Option<Box<Ending>> {
        match came {
            FromProcess::Output(bytes) => self.terminal.add(bytes),
            FromProcess::Notice(AttachNotice::Ending { ending }) => return Some(ending),
            FromProcess::Notice(AttachNotice::Dropped { range }) => {
                let count = range.end.saturating_sub(range.start);
                self.dropped = self.dropped.saturating_add(count);
            }
            FromProcess::Notice(AttachNotice::Refused { error }) => match error.code {
                // The ending says it better.
                ErrorCode::ProcessExited => {}
                _ => self.refused = Some(error.to_string()),
            },
            // Who has the keyboard is said when something typed is refused.
            FromProcess::Notice(AttachNotice::Attached { .. } | AttachNotice::Keyboard { .. }) => {}
        }
        None
    }
}

/// Waits for the detach key. Cancel-safe.
async fn left(by: &mut Option<oneshot::Receiver<SessionEnd>>) -> SessionEnd {
    match by {
        // The thread that reads keys says why it ends; if it panicked, there are no more keys.
        Some(by) => by.await.unwrap_or(SessionEnd::Interrupted(Signal::HUP)),
        None => std::future::pending().await,
    }
}

/// Waits until the server has taken what was typed and has closed the connection.
async fn flush_input(
    sending: Pin<&mut impl Future<Output = Result<AttachedWriter, ClientError>>>,
    mut reader: AttachedReader,
) {
    let all_taken = async {
        if let Ok(writer) = sending.await
            && writer.close().await.is_ok()
        {
            while let Ok(Some(_)) = reader.next().await {}
        }
    };
    // A server that does not answer has had its time.
    _ = timeout(FLUSH_TIMEOUT, all_taken).await;
}

fn end_if_closed(shown: io::Result<()>) -> anyhow::Result<Option<SessionEnd>> {
    match shown.as_ref().map_err(Errno::from_io_error) {
        Ok(()) => Ok(None),
        Err(Some(Errno::PIPE)) => Ok(Some(SessionEnd::ReaderGone)),
        // What a terminal says that is gone.
        Err(Some(Errno::IO)) => Ok(Some(SessionEnd::Interrupted(Signal::HUP))),
        Err(_) => shown.map(|()| None).context("cannot write to standard output"),
    }
}

/// What the process gets from our side.
#[derive(Debug)]
pub(crate) struct SessionOptions {
    /// Every key, if our terminal is to be passed through.
    pub(crate) keys: Option<Keys>,
    pub(crate) pass: Pass,
    /// Whether the size of our window is sent.
    pub(crate) send_size: bool,
}

impl<'a> Session<'a> {
    /// Must be called on a runtime.
    pub(crate) fn open(
        client: &'a Client,
        id: &'a str,
        wanted: SessionOptions,
    ) -> anyhow::Result<(Self, Outgoing)> {
        // Before anything is changed that a deadly signal would leave so.
        let signals = Signals::listen()?;
        let (window, sizes) = Window::listen().context("cannot listen for signals")?;
        let has_keys = wanted.keys.is_some();
        let terminal = TerminalGuard::new(has_keys);
        let (input, left) = input::start(wanted.keys, wanted.pass)
            .context("cannot start a thread for standard input")?;
        let own = Self {
            reconnect: Reconnect::new(client, id),
            terminal,
            window,
            signals,
            left: has_keys.then_some(left),
            dropped: 0,
            refused: None,
            reconnected: false,
        };
        let sizes = wanted.send_size.then_some(sizes);
        Ok((own, Outgoing { input, sizes, expected: None, end_sent: false }))
    }

    /// Shows what was before, and has the process show what it is at.
    pub(crate) fn begin(&mut self, begin: InitialOutput) {
        self.terminal.add(begin.shown);
        self.window.resend_size(begin.drawing);
    }

    /// Waits until the terminal has taken what restores it, or until the user detaches.
    pub(crate) async fn flush_terminal(&mut self) {
        self.terminal.queue_restore();
        while self.terminal.has_output() {
            tokio::select! {
                biased;
                _ = left(&mut self.left) => return,
                _ = self.signals.next() => return,
                // A terminal that is gone shows nothing.
                shown = self.terminal.show() => if shown.is_err() { return },
            }
        }
    }

    /// Gives the terminal back, and tells what is missing of the session.
    pub(crate) fn finish(&mut self) {
        self.terminal.restore();
        if self.terminal.mid_line && isatty(stdout()) && isatty(stderr()) {
            print::break_line_first();
        }
        if self.reconnected {
            print::message(RECONNECTED);
        }
        if self.dropped > 0 {
            let one = "byte of output was dropped before it was shown";
            let several = "bytes of output were dropped before they were shown";
            print::message(format::count(self.dropped, one, several));
        }
        if let Some(why) = &self.refused {
            print::message(format_args!("the server refused a request: {why}"));
        }
    }
}
