//! An accepted connection's socket: cut when its client stalls, closed so that its client hears.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::OwnedSemaphorePermit;

use super::linger::{Linger, Unread};
use super::stall::{Stall, Upgraded};
use crate::Limits;

/// One of the two kinds of socket.
#[derive(Debug)]
pub(super) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

/// A stream with its bounds. It keeps its place among the connections for as long as it lives,
/// also when it is handed on to another protocol.
#[derive(Debug)]
pub(super) struct Socket {
    stream: Stream,
    stall: Stall,
    linger: Linger,
    _place: OwnedSemaphorePermit,
}

impl Socket {
    pub(super) fn new(stream: Stream, limits: &Limits, place: OwnedSemaphorePermit) -> Self {
        let (stall, linger) = (Stall::new(limits.stall), Linger::new(limits.linger));
        Self { stream, stall, linger, _place: place }
    }

    /// Whether the client may still be sending.
    pub(super) fn unread(&self) -> Unread {
        self.linger.unread.clone()
    }

    /// Whether it was handed on.
    pub(super) fn upgraded(&self) -> Upgraded {
        self.stall.upgraded.clone()
    }

    /// Passes the outcome of a write on, and looks at the clock while there is none.
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
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client takes no answer")))
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
        of_stream!(&mut self.stream, poll_read(context, into))
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
        self.watch(context, outcome)
    }

    /// Ends our side, then hears the client out for a while: what it sends to a closed socket
    /// would make the kernel throw our last answer away.
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { stream, linger, .. } = &mut *self;
        if !linger.has_begun() {
            ready!(of_stream!(&mut *stream, poll_shutdown(context)))?;
        }
        linger
            .poll(context, |context, into| of_stream!(&mut *stream, poll_read(context, into)))
            .map(Ok)
    }
}
