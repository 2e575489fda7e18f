//! Being attached: what the process writes is shown, what is typed is sent, until one of both sides
//! parts.

use std::io;
use std::pin::{Pin, pin};
use std::time::Duration;

use anyhow::Context;
use lastbyte_client::wire::{AttachNotice, Ending, ErrorCode};
use lastbyte_client::{Attached, AttachedReader, AttachedWriter, Client, ClientError, FromProcess};
use lastbyte_engine::Signal;
use rustix::io::Errno;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::again::Again;
use super::input::Left;
use super::lent::Lent;
use super::outgoing::Outgoing;
use super::window::{Window, WindowEvent, stop_self};
use crate::own_streams;
use crate::signals::Signals;

/// This side of it.
#[derive(Debug)]
pub(crate) struct Conversation<'a> {
    pub(crate) client: &'a Client,
    pub(crate) id: &'a str,
    pub(crate) lent: Lent,
    pub(crate) window: Window,
    pub(crate) signals: Signals,
    /// `None` when nobody can leave by a key, or has.
    pub(crate) left: Option<oneshot::Receiver<Left>>,
    /// How many bytes were dropped before they could be shown.
    pub(crate) dropped: u64,
    /// What the server said last of something that it did not do.
    pub(crate) refused: Option<String>,
}

/// How it came to its end.
#[derive(Debug)]
pub(crate) enum Parting {
    Detached,
    /// Nobody reads our standard output.
    ReaderGone,
    Interrupted(Signal),
    Ended(Box<Ending>),
}

/// What became of one connection.
enum Over {
    Parted(Parting),
    /// It broke with all before this cursor shown.
    Broke {
        cursor: u64,
    },
}

/// How long a server that is left is given to take what was typed before.
const FAREWELL: Duration = Duration::from_secs(1);

impl Conversation<'_> {
    /// Goes on over another connection when one breaks.
    pub(crate) async fn until_parting(
        &mut self,
        mut attached: Attached,
        outgoing: &mut Outgoing,
    ) -> anyhow::Result<Parting> {
        let mut again = Again::new(self.client, self.id);
        loop {
            let accepted = attached.accepted();
            outgoing.begin(accepted);
            let cursor = match self.over(attached, outgoing).await? {
                Over::Parted(parting) => return Ok(parting),
                Over::Broke { cursor } => cursor,
            };
            let expected = accepted.map(|accepted| accepted + outgoing.sent());
            attached = tokio::select! {
                // A server that does not answer can be left like any other.
                left = left(&mut self.left) => return Ok(self.leave(left)),
                signal = self.signals.next() => return Ok(Parting::Interrupted(signal)),
                attached = again.attach(cursor, expected) => attached?,
            };
        }
    }

    async fn over(&mut self, attached: Attached, outgoing: &mut Outgoing) -> anyhow::Result<Over> {
        let (mut reader, writer) = attached.split();
        let mut sending = pin!(outgoing.send(writer));
        let mut reader_gone = pin!(own_streams::stdout_reader_gone());
        let mut sends = true;
        loop {
            tokio::select! {
                // What ends it comes first, however much there is to show.
                biased;
                left = left(&mut self.left) => {
                    let parting = self.leave(left);
                    if sends {
                        farewell(sending, reader).await;
                    }
                    return Ok(Over::Parted(parting));
                }
                signal = self.signals.next() => {
                    return Ok(Over::Parted(Parting::Interrupted(signal)));
                }
                event = self.window.next() => self.react(event),
                () = &mut reader_gone, if !self.lent.is_terminal() => {
                    return Ok(Over::Parted(Parting::ReaderGone));
                }
                // What the server said before it stopped listening is still to be read.
                _ = &mut sending, if sends => sends = false,
                shown = self.lent.show(), if self.lent.has_something_to_show() => {
                    if let Some(parting) = unless_shown(shown)? {
                        return Ok(Over::Parted(parting));
                    }
                }
                came = reader.next(), if !self.lent.has_something_to_show() => match came {
                    Ok(Some(came)) => if let Some(ending) = self.take(came) {
                        return Ok(Over::Parted(Parting::Ended(ending)));
                    },
                    Ok(None) | Err(_) => return Ok(Over::Broke { cursor: reader.cursor() }),
                },
            }
        }
    }

    /// The terminal is given back before anything is waited for.
    fn leave(&mut self, left: Left) -> Parting {
        self.lent.give_back();
        self.window.close();
        match left {
            Left::Detached => Parting::Detached,
            Left::HungUp => Parting::Interrupted(Signal::HUP),
        }
    }

    fn react(&mut self, event: WindowEvent) {
        match event {
            WindowEvent::Resized => self.window.tell_size(),
            WindowEvent::Stopped => {
                self.lent.give_back();
                stop_self();
            }
            WindowEvent::Continued => {
                self.lent.lend_again();
                self.window.tell_size_anew(self.lent.drawing());
            }
        }
    }

    /// What the server sends; the ending is the last.
    fn take(&mut self, came: FromProcess) -> Option<Box<Ending>> {
        match came {
            FromProcess::Output(bytes) => self.lent.add(bytes),
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
            FromProcess::Notice(AttachNotice::Attached { .. }) => {}
        }
        None
    }
}

/// Waits until somebody leaves by a key. Cancel-safe.
pub(super) async fn left(by: &mut Option<oneshot::Receiver<Left>>) -> Left {
    let Some(waiting) = by else { return std::future::pending().await };
    // Whoever reads the keys says why before going; one that has failed leaves us without any.
    let left = waiting.await.unwrap_or(Left::HungUp);
    *by = None;
    left
}

/// Lets the server take what was typed before, and the connection come to its end.
async fn farewell(
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
    _ = timeout(FAREWELL, all_taken).await;
}

fn unless_shown(shown: io::Result<()>) -> anyhow::Result<Option<Parting>> {
    match shown.as_ref().map_err(Errno::from_io_error) {
        Ok(()) => Ok(None),
        Err(Some(Errno::PIPE)) => Ok(Some(Parting::ReaderGone)),
        // What a terminal says that is gone.
        Err(Some(Errno::IO)) => Ok(Some(Parting::Interrupted(Signal::HUP))),
        Err(_) => shown.map(|()| None).context("cannot write to standard output"),
    }
}
