//! The socket of an accepted connection: aborted when its client stalls, and closed so that the client
//! can read the last answer.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use super::half_closed::HalfClosed;
use super::lingering_close::{LingeringClose, Unread};
use super::request_state::RequestState;
use super::slots::SocketSlot;
use super::stall::{Stall, Upgraded};
use crate::Limits;

/// One of the two kinds of socket.
#[derive(Debug)]
pub(super) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

/// A stream with its bounds. It keeps its connection slot for as long as it lives,
/// also when it is handed on to another protocol.
#[derive(Debug)]
pub(super) struct Socket {
    stream: Stream,
    stall: Stall,
    lingering_close: LingeringClose,
    request_state: RequestState,
    /// Since the client has ended its side while an answer is owed to it.
    half_closed: Option<HalfClosed>,
    _slot: SocketSlot,
}

impl Socket {
    pub(super) fn new(stream: Stream, limits: &Limits, slot: SocketSlot) -> Self {
        let (stall, lingering_close) =
            (Stall::new(limits.stall), LingeringClose::new(limits.lingering_close));
        let request_state = RequestState::default();
        Self { stream, stall, lingering_close, request_state, half_closed: None, _slot: slot }
    }

    /// The request that is being answered.
    pub(super) fn request_state(&self) -> RequestState {
        self.request_state.clone()
    }

    /// Whether the client may still be sending.
    pub(super) fn unread(&self) -> Unread {
        self.lingering_close.unread.clone()
    }

    /// Whether it was handed on.
    pub(super) fn upgraded(&self) -> Upgraded {
        self.stall.upgraded.clone()
    }

    /// The client has ended its side. hyper hears of it when the answer is given, or when the
    /// client is gone.
    fn hold_end(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Self { stream, request_state, half_closed, .. } = self;
        request_state.wake_when_answered(context.waker());
        if !request_state.is_answering() {
            return Poll::Ready(());
        }
        half_closed.get_or_insert_with(|| HalfClosed::begin(&*stream)).poll(context, &*stream)
    }

    /// Passes the outcome of a write on, and checks the timeout while it is pending.
    fn watch<T>(
        &mut self,
        context: &mut Context<'_>,
        outcome: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.stall.moved();
            return outcome;
        }
        let stream = &self.stream;
        ready!(self.stall.poll(context, || lastbyte_sys::socket::unsent(stream).ok()));
        self.stream.give_up();
        Poll::Ready(Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "timed out: the client does not read the answer",
        )))
    }
}

impl Stream {
    /// Lets the kernel forget what was not taken, instead of offering it for minutes.
    fn give_up(&self) {
        match self {
            Self::Tcp(stream) => _ = stream.set_zero_linger(), // at worst it is offered longer
            Self::Unix(_) => {}
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(stream) => stream.as_fd(),
            Self::Tcp(stream) => stream.as_fd(),
        }
    }
}

/// Calls the same method of whichever stream it is.
macro_rules! of_stream {
    ($stream:expr, $method:ident($($argument:expr),*)) => {
        match $stream {
            Stream::Unix(stream) => Pin::new(stream).$method($($argument),*),
            Stream::Tcp(stream) => Pin::new(stream).$method($($argument),*),
        }
    };
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.half_closed.is_none() {
            let before = into.filled().len();
            ready!(of_stream!(&mut self.stream, poll_read(context, into)))?;
            if into.filled().len() > before || !self.request_state.is_answering() {
                return Poll::Ready(Ok(()));
            }
        }
        self.hold_end(context).map(Ok)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = of_stream!(&mut self.stream, poll_write(context, bytes));
        self.watch(context, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = of_stream!(&mut self.stream, poll_write_vectored(context, slices));
        self.watch(context, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = of_stream!(&mut self.stream, poll_flush(context));
        // hyper flushes when it has nothing left.
        if self.request_state.flushed() {
            context.waker().wake_by_ref();
        }
        self.watch(context, outcome)
    }

    /// Ends our side, then hears the client out for a while: what it sends to a closed socket
    /// would make the kernel throw our last answer away.
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { stream, lingering_close, .. } = &mut *self;
        if !lingering_close.has_begun() {
            ready!(of_stream!(&mut *stream, poll_shutdown(context)))?;
        }
        lingering_close
            .poll(context, |context, into| of_stream!(&mut *stream, poll_read(context, into)))
            .map(Ok)
    }
}
