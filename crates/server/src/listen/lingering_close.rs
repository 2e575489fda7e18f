//! A lingering close: what a client still sends after its last answer is read and thrown away for a
//! while, because a socket that is closed with unread input loses the answer.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::io::ReadBuf;
use tokio::time::{Instant, Sleep, sleep_until};

use super::request_state::RequestState;

/// Throws away what comes, for a time, if the client may still be sending.
#[derive(Debug)]
pub(super) struct LingeringClose {
    time: Duration,
    pub(super) unread: Unread,
    until: Option<Pin<Box<Sleep>>>,
}

impl LingeringClose {
    pub(super) fn new(time: Duration) -> Self {
        // An invalid head is not read to its end.
        Self { time, unread: Unread(Arc::new(AtomicBool::new(true))), until: None }
    }

    pub(super) fn has_begun(&self) -> bool {
        self.until.is_some()
    }

    /// Ready at the client's end, at an error or when the time is over.
    pub(super) fn poll(
        &mut self,
        context: &mut Context<'_>,
        mut read: impl FnMut(&mut Context<'_>, &mut ReadBuf<'_>) -> Poll<io::Result<()>>,
    ) -> Poll<()> {
        let time = self.time;
        let until = self.until.get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + time)));
        let mut thrown_away = [0; 8192];
        // Checked each time: a client that never stops sending leaves no other moment.
        while self.unread.is_some() && Instant::now() < until.deadline() {
            let mut into = ReadBuf::new(&mut thrown_away);
            match read(context, &mut into) {
                Poll::Ready(Ok(())) if !into.filled().is_empty() => {}
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return until.as_mut().poll(context),
            }
        }
        Poll::Ready(())
    }
}

/// Whether a part of the request was not read. Shared by a connection and its bodies.
#[derive(Debug, Clone)]
pub(super) struct Unread(Arc<AtomicBool>);

impl Unread {
    fn is_some(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// A request has come: the body says whether it was read.
    pub(super) fn watch(&self, body: Incoming, request_state: &RequestState) -> WatchedBody {
        self.0.store(false, Ordering::Relaxed);
        request_state.begin();
        let (unread, request_state) = (self.clone(), request_state.clone());
        let mut watched = WatchedBody { ended: false, body, unread, request_state };
        watched.look();
        watched
    }
}

/// A request's body that tells when it is dropped before its end.
#[derive(Debug)]
pub(super) struct WatchedBody {
    body: Incoming,
    ended: bool,
    unread: Unread,
    request_state: RequestState,
}

impl WatchedBody {
    fn look(&mut self) {
        if !self.ended && self.body.is_end_stream() {
            self.end();
        }
    }

    fn end(&mut self) {
        self.ended = true;
        self.request_state.received();
    }
}

impl Body for WatchedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        match frame {
            Poll::Ready(None) => self.end(),
            Poll::Ready(Some(_)) | Poll::Pending => self.look(),
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for WatchedBody {
    fn drop(&mut self) {
        if !self.ended {
            self.unread.0.store(true, Ordering::Relaxed);
        }
    }
}
