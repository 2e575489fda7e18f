//! What the socket has to know of the request that its connection is answering.
//!
//! hyper buffers as much of an answer as it is given, and takes the end of what a client sends for
//! the end of the client. [`AnswerBody`] hands it one piece of an answer at a time, and tells the
//! socket whether an answer is still to be sent.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, Waker, ready};

use axum::body::Body;
use axum::http::{Response, StatusCode};
use bytes::Bytes;
use futures_util::task::AtomicWaker;
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use tokio::sync::OwnedSemaphorePermit;

/// Shared by a connection's socket, its requests and its answers, all of which one task polls.
#[derive(Debug, Clone, Default)]
pub(super) struct RequestState(Arc<RequestFlags>);

#[derive(Debug, Default)]
struct RequestFlags {
    /// The request has come to its end.
    received: AtomicBool,
    /// The handler wants no more of the body: it has read it to its end, or dropped it.
    body_done: AtomicBool,
    /// hyper has been given the whole answer.
    given: AtomicBool,
    /// hyper has a piece of the answer, or its end, that the kernel has not.
    unflushed: AtomicBool,
    /// hyper has asked for another piece meanwhile.
    piece_wanted: AtomicBool,
    /// The connection has become another protocol's.
    upgraded: AtomicBool,
    /// Waits for the end of the answer with the end of the client's side in hand.
    reader: AtomicWaker,
}

/// A larger piece is given to hyper in several.
const MOST_AT_ONCE: usize = 256 << 10;

impl RequestState {
    /// A request has come, whose body tells when it was read.
    pub(super) fn begin(&self, body: Incoming) -> RequestBody {
        self.0.received.store(body.is_end_stream(), Relaxed);
        self.0.body_done.store(body.is_end_stream(), Relaxed);
        self.0.given.store(false, Relaxed);
        RequestBody { body, request_state: self.clone() }
    }

    /// Whether the client may still be sending: also an invalid head is not read to its end.
    pub(super) fn is_unread(&self) -> bool {
        !self.0.received.load(Relaxed)
    }

    /// Whether a handler may still want something of the request.
    pub(super) fn is_body_wanted(&self) -> bool {
        !self.0.body_done.load(Relaxed)
    }

    /// Whether there is a request that needs nothing more of the client, and whose answer is not
    /// with the kernel.
    pub(super) fn is_answering(&self) -> bool {
        let answered = self.0.given.load(Relaxed) && !self.0.unflushed.load(Relaxed);
        !self.is_body_wanted() && !answered
    }

    /// Whether the client may take as long as it likes: the other protocol bounds what waits for it.
    pub(super) fn is_upgraded(&self) -> bool {
        self.0.upgraded.load(Relaxed)
    }

    /// Wakes this reader when the answer is there.
    pub(super) fn wake_when_answered(&self, reader: &Waker) {
        self.0.reader.register(reader);
    }

    /// The kernel has all that hyper had. Whether hyper has to be polled for more.
    pub(super) fn flushed(&self) -> bool {
        if self.0.unflushed.swap(false, Relaxed) && self.0.given.load(Relaxed) {
            self.0.reader.wake();
        }
        self.0.piece_wanted.swap(false, Relaxed)
    }

    /// The answer to the request that came last, with the room it takes.
    pub(super) fn answer(
        &self,
        response: Response<Body>,
        room: Option<OwnedSemaphorePermit>,
    ) -> Response<AnswerBody> {
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            self.0.upgraded.store(true, Relaxed);
        }
        let (request_state, rest) = (self.clone(), Bytes::new());
        response.map(|body| AnswerBody { body, rest, request_state, _room: room })
    }
}

/// A request's body that tells when its end has come.
#[derive(Debug)]
pub(super) struct RequestBody {
    body: Incoming,
    request_state: RequestState,
}

impl hyper::body::Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if matches!(frame, Poll::Ready(None)) || self.body.is_end_stream() {
            self.request_state.0.received.store(true, Relaxed);
            self.request_state.0.body_done.store(true, Relaxed);
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

impl Drop for RequestBody {
    fn drop(&mut self) {
        self.request_state.0.body_done.store(true, Relaxed);
    }
}

/// An answer's body, given to hyper in pieces of which the kernel has each before the next is made.
#[derive(Debug)]
pub(super) struct AnswerBody {
    body: Body,
    /// Of a large piece.
    rest: Bytes,
    request_state: RequestState,
    _room: Option<OwnedSemaphorePermit>,
}

impl hyper::body::Body for AnswerBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Self { body, rest, request_state, .. } = &mut *self;
        let state = &request_state.0;
        if state.unflushed.load(Relaxed) {
            // The socket wakes the task when it is flushed.
            state.piece_wanted.store(true, Relaxed);
            return Poll::Pending;
        }
        if rest.is_empty() {
            match ready!(Pin::new(body).poll_frame(context))
                .map(|frame| frame.map(Frame::into_data))
            {
                Some(Ok(Ok(data))) => *rest = data,
                Some(Ok(Err(trailers))) => return Poll::Ready(Some(Ok(trailers))),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
        let piece = rest.split_to(rest.len().min(MOST_AT_ONCE));
        state.unflushed.store(true, Relaxed);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (mut hint, rest) = (self.body.size_hint(), self.rest.len() as u64);
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper + rest);
        }
        hint.set_lower(hint.lower() + rest);
        hint
    }
}

impl Drop for AnswerBody {
    fn drop(&mut self) {
        // hyper flushes its end, and the head of an answer without a body.
        self.request_state.0.unflushed.store(true, Relaxed);
        self.request_state.0.given.store(true, Relaxed);
    }
}
