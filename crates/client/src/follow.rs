//! The output of one process as it comes, every byte once.

use crate::sse::Message;
use crate::subscription::{Received, Subscription};
use crate::wire::{
    self, Ending, ErrorBody, FollowDropped, FollowOutput, Range, Stream, follow_events,
};
use crate::{ClientError, Problem};

/// Follows a log; when the connection breaks it goes on behind the last byte that it gave.
#[derive(Debug)]
pub struct Following {
    pub(crate) log: Subscription,
    pub(crate) over: bool,
}

/// What comes next of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Followed {
    Output(Piece),
    /// What a survivor wrote after the ending.
    Late(Piece),
    /// These bytes are gone.
    Dropped(Range),
    Ending(Box<Ending>),
}

/// Some bytes of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    pub range: Range,
    /// `None` where streams are not told apart.
    pub stream: Option<Stream>,
    /// When they came; `None` unless asked for.
    pub at_unix_ns: Option<u64>,
    pub bytes: Vec<u8>,
}

impl Following {
    /// Waits for what comes next; `None` when that is nothing. Cancel-safe. After an error it can
    /// be called again, and tries to connect again.
    pub async fn next(&mut self) -> Result<Option<Followed>, ClientError> {
        while !self.over {
            match self.log.next().await? {
                Received::Message(message) => return self.followed(message).map(Some),
                Received::Reconnected => {}
                Received::End => self.over = true,
            }
        }
        Ok(None)
    }

    fn followed(&mut self, message: Message) -> Result<Followed, ClientError> {
        let (ask, data) = (&self.log.ask, message.data.as_bytes());
        Ok(match message.event.as_str() {
            follow_events::OUTPUT => Followed::Output(self.piece(data)?),
            follow_events::LATE => Followed::Late(self.piece(data)?),
            follow_events::DROPPED => Followed::Dropped(ask.decode::<FollowDropped>(data)?.range),
            follow_events::ENDING => Followed::Ending(Box::new(ask.decode(data)?)),
            follow_events::FAILED => {
                self.over = true;
                return Err(ClientError::Refused(ask.decode::<ErrorBody>(data)?.error));
            }
            _ => return Err(ask.failed(Problem::Event { name: message.event })),
        })
    }

    fn piece(&self, data: &[u8]) -> Result<Piece, ClientError> {
        let FollowOutput { range, stream, at_unix_ns, content } = self.log.ask.decode(data)?;
        let bytes = match content {
            wire::Bytes::Text(text) => text.into_bytes(),
            wire::Bytes::Base64(text) => base64_simd::STANDARD
                .decode_to_vec(&text)
                .map_err(|_| self.log.ask.failed(Problem::Base64))?,
        };
        Ok(Piece { range, stream, at_unix_ns, bytes })
    }
}
