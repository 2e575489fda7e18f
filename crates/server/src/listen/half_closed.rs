//! A client that has ended its side of the connection and waits for an answer, as `nc -N` does.
//!
//! It looks like one that is gone: both have sent the end of their side. A unix socket tells them
//! apart at once. Over TCP the kernel has to ask the other end, and that of a client which has
//! closed its socket answers for a minute more (`tcp_fin_timeout`) as if it were there.

use std::os::fd::AsFd;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use lastbyte_sys::socket;
use tokio::time::{Instant, Sleep, sleep_until};

/// How often a connection whose client has ended its side is looked at.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

/// How often the kernel asks.
const PROBE_AFTER: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct HalfClosed {
    next_look: Pin<Box<Sleep>>,
}

impl HalfClosed {
    pub(super) fn begin(socket: impl AsFd) -> Self {
        // A unix socket needs no such question, and refuses the option.
        _ = socket::set_keepalive(socket, PROBE_AFTER);
        Self { next_look: Box::pin(sleep_until(Instant::now())) }
    }

    /// Ready when the client is gone.
    pub(super) fn poll(&mut self, context: &mut Context<'_>, socket: impl AsFd) -> Poll<()> {
        loop {
            ready!(self.next_look.as_mut().poll(context));
            if socket::is_hung_up(&socket) {
                return Poll::Ready(());
            }
            self.next_look.as_mut().reset(Instant::now() + BETWEEN_LOOKS);
        }
    }
}
