//! The socket of an accepted connection: aborted when its client stalls, and closed so that the client
//! can read the last answer.

use std::io::{self, IoSlice};
use std::mem;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Instant, Sleep, sleep_until};

use super::half_closed::HalfClosed;
use super::request_state::RequestState;
use super::stall::Stall;
use super::traffic::Slot;
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
    /// The request that is being answered.
    pub(super) request_state: RequestState,
    /// The client has ended its side.
    end_seen: bool,
    /// Since the client has ended its side while an answer is owed to it.
    half_closed: Option<HalfClosed>,
    lingering_close: Duration,
    /// Since we have ended our side.
    lingers_until: Option<Pin<Box<Sleep>>>,
    /// `None` for a connection that is rejected.
    _slot: Option<Arc<Slot>>,
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

impl Socket {
    pub(super) fn new(stream: Stream, limits: &Limits, slot: Option<Arc<Slot>>) -> Self {
        Self {
            stream,
            stall: Stall::new(limits.stall),
            request_state: RequestState::default(),
            end_seen: false,
            half_closed: None,
            lingering_close: limits.lingering_close,
            lingers_until: None,
            _slot: slot,
        }
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

    /// A lingering close: throws away what the client sends, because a socket that is closed with
    /// unread input loses the answer. Ready at the client's end, at an error or when the time is
    /// over.
    fn poll_linger(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let time = self.lingering_close;
        let begin = || Box::pin(sleep_until(Instant::now() + time));
        let until = self.lingers_until.get_or_insert_with(begin);
        let mut thrown_away = [0; 8192];
        // Checked each time: a client that never stops sending leaves no other moment.
        while Instant::now() < until.deadline() {
            let mut into = ReadBuf::new(&mut thrown_away);
            match of_stream!(&mut self.stream, poll_read(context, &mut into)) {
                Poll::Ready(Ok(())) if !into.filled().is_empty() => {}
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return until.as_mut().poll(context),
            }
        }
        Poll::Ready(())
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
        if self.request_state.is_upgraded() {
            return Poll::Pending;
        }
        let stream = &self.stream;
        ready!(self.stall.poll(context, || lastbyte_sys::socket::unsent(stream).ok()));
        if let Stream::Tcp(stream) = stream {
            // Lets the kernel forget what was not taken; at worst it is offered for minutes.
            _ = stream.set_zero_linger();
        }
        Poll::Ready(Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "timed out: the client does not read the answer",
        )))
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

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.half_closed.is_none() {
            let before = into.filled().len();
            ready!(of_stream!(&mut self.stream, poll_read(context, into)))?;
            if into.filled().len() > before {
                return Poll::Ready(Ok(()));
            }
            // hyper may have a whole body whose end its handler has not read, which is polled next.
            if self.request_state.is_body_wanted() && !mem::replace(&mut self.end_seen, true) {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            if !self.request_state.is_answering() {
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

    /// Ends our side, then hears out a client that may still be sending.
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.lingers_until.is_none() {
            ready!(of_stream!(&mut self.stream, poll_shutdown(context)))?;
            if !self.request_state.is_unread() {
                return Poll::Ready(Ok(()));
            }
        }
        self.poll_linger(context).map(Ok)
    }
}
