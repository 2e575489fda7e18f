//! A server that does not answer: how long it is asked again, and that the caller is told.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::{Address, ClientError, Problem};

/// The way to a server, for every connection of a client.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    pub(crate) address: Address,
    pub(crate) patience: Duration,
    pub(crate) tell: fn(),
    /// Only a server that was there will be back.
    was_there: Arc<AtomicBool>,
}

/// From the first error to the next answer.
#[derive(Debug, Default)]
pub(crate) struct Outage {
    begun: Option<Instant>,
    attempts: u32,
    told: bool,
}

/// For a file that is missing, which belongs to a server that has shut down or, for a moment, to one
/// that takes the place of another; and for a program that has never answered.
const SHORT: Duration = Duration::from_millis(500);
/// Doubled with each attempt, up to the second.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LAST_PAUSE: Duration = Duration::from_millis(64);

impl Link {
    pub(crate) fn new(address: Address) -> Self {
        let patience = Duration::from_secs(10);
        Self { address, patience, tell: || {}, was_there: Arc::default() }
    }

    pub(crate) fn seen(&self) {
        self.was_there.store(true, Ordering::Relaxed);
    }

    /// How long to go on after this error.
    fn patience_with(&self, error: &ClientError) -> Duration {
        let broke = |source: &Problem| source.is_broken_connection();
        let broke = matches!(error, ClientError::Protocol { source, .. } if broke(source));
        // Another program may have the port, but hardly the file.
        if broke && matches!(self.address, Address::Unix(_)) {
            self.seen();
        }
        let was_there = self.was_there.load(Ordering::Relaxed);
        match error {
            ClientError::Connect { source, .. } => match source.kind() {
                ErrorKind::NotFound if was_there => self.patience.min(SHORT),
                ErrorKind::ConnectionRefused if was_there => self.patience,
                // It accepts no connection now, but somebody holds the socket.
                ErrorKind::WouldBlock | ErrorKind::ConnectionReset => self.patience,
                _ => Duration::ZERO,
            },
            ClientError::Protocol { .. } if broke && was_there => self.patience,
            ClientError::Protocol { .. } if broke => self.patience.min(SHORT),
            ClientError::Protocol { .. }
            | ClientError::StartUnknown { .. }
            | ClientError::Foreign { .. }
            | ClientError::Refused(_) => Duration::ZERO,
        }
    }
}

impl Outage {
    /// Waits before another attempt; returns the error if there is to be none.
    pub(crate) async fn pause(
        &mut self,
        link: &Link,
        error: ClientError,
    ) -> Result<(), ClientError> {
        let now = Instant::now();
        let begun = *self.begun.get_or_insert(now);
        if now - begun >= link.patience_with(&error) {
            return Err(error);
        }
        let pause = FIRST_PAUSE * 2u32.saturating_pow(self.attempts);
        self.attempts += 1;
        sleep_until(now + pause.min(LAST_PAUSE)).await;
        Ok(())
    }

    /// There is an answer: tells the caller, once.
    pub(crate) fn answered(&mut self, link: &Link) {
        link.seen();
        if self.begun.is_some() && !std::mem::replace(&mut self.told, true) {
            (link.tell)();
        }
    }
}

impl Problem {
    /// Whether the connection was lost, as against an answer that makes no sense.
    fn is_broken_connection(&self) -> bool {
        use tokio_tungstenite::tungstenite::Error;
        match self {
            Self::Http(_) | Self::Ended => true,
            Self::WebSocket(error) => matches!(
                **error,
                Error::Io(_) | Error::Protocol(_) | Error::ConnectionClosed | Error::AlreadyClosed
            ),
            Self::Request(_)
            | Self::Json { .. }
            | Self::Head { .. }
            | Self::Event { .. }
            | Self::Base64 => false,
        }
    }
}
