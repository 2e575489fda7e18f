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
use axum::http::Response;
use bytes::Bytes;
use futures_util::task::AtomicWaker;
use hyper::body::{Frame, SizeHint};
use tokio::sync::OwnedSemaphorePermit;

/// Shared by a connection's socket, its requests and its answers, all of which one task polls.
#[derive(Debug, Clone, Default)]
pub(super) struct RequestState(Arc<State>);

#[derive(Debug, Default)]
struct State {
    /// The request has come to its end.
    received: AtomicBool,
    /// hyper has been given the whole answer.
    given: AtomicBool,
    /// hyper has something of the answer that the kernel has not.
    unflushed: AtomicBool,
    /// That is a piece of the body.
    piece_queued: AtomicBool,
    /// hyper has asked for another piece meanwhile.
    piece_wanted: AtomicBool,
    /// Waits for the end of the answer with the end of the client's side in hand.
    reader: AtomicWaker,
}

/// A larger piece is given to hyper in several.
const MOST_AT_ONCE: usize = 256 << 10;

impl RequestState {
    pub(super) fn begin(&self) {
        self.0.received.store(false, Relaxed);
        self.0.given.store(false, Relaxed);
    }

    pub(super) fn received(&self) {
        self.0.received.store(true, Relaxed);
    }

    /// Whether a whole request has come whose answer is not with the kernel.
    pub(super) fn is_answering(&self) -> bool {
        let answered = self.0.given.load(Relaxed) && !self.0.unflushed.load(Relaxed);
        self.0.received.load(Relaxed) && !answered
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
        self.0.piece_queued.store(false, Relaxed);
        self.0.piece_wanted.swap(false, Relaxed)
    }

    /// The answer to the request that came last, with the room it takes.
    pub(super) fn answer(
        &self,
        response: Response<Body>,
        room: Option<OwnedSemaphorePermit>,
    ) -> Response<AnswerBody> {
        self.0.unflushed.store(true, Relaxed);
        let (request_state, rest) = (self.clone(), Bytes::new());
        response.map(|body| AnswerBody { body, rest, request_state, _room: room })
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
        if state.piece_queued.load(Relaxed) {
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
        state.piece_queued.store(true, Relaxed);
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
        self.request_state.0.given.store(true, Relaxed);
        self.request_state.0.reader.wake();
    }
}
