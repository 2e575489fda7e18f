//! The output of one process as it comes, every byte once.

use serde::de::DeserializeOwned;

use crate::error::excerpt;
use crate::request::{ApiRequest, process_path};
use crate::sse::Message;
use crate::subscription::{Received, Subscription};
use crate::wire::{
    self, Ending, ErrorBody, FollowDropped, FollowOutput, FollowQuery, Range, Stream, follow_events,
};
use crate::{Address, ClientError, Problem};

/// Follows a log; when the connection breaks it goes on behind the last byte that it gave.
#[derive(Debug)]
pub struct Following {
    log: Subscription,
    over: bool,
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
    pub(crate) async fn open(
        address: Address,
        id: &str,
        query: &FollowQuery,
    ) -> Result<Self, ClientError> {
        let ask = ApiRequest::get(process_path(id, "/follow")).query(query);
        Ok(Self { log: Subscription::open(address, ask).await?, over: false })
    }

    /// Waits for what comes next; `None` when that is nothing. Cancel-safe. After an error it can
    /// be called again, and tries to connect again.
    pub async fn next(&mut self) -> Result<Option<Followed>, ClientError> {
        while !self.over {
            match self.log.next().await? {
                Received::Message(message) => return self.followed(&message).map(Some),
                Received::Reconnected => {}
                Received::End => self.over = true,
            }
        }
        Ok(None)
    }

    fn followed(&mut self, message: &Message) -> Result<Followed, ClientError> {
        match message.event.as_str() {
            follow_events::OUTPUT => Ok(Followed::Output(self.piece(message)?)),
            follow_events::LATE => Ok(Followed::Late(self.piece(message)?)),
            follow_events::DROPPED => {
                self.data::<FollowDropped>(message).map(|dropped| Followed::Dropped(dropped.range))
            }
            follow_events::ENDING => Ok(Followed::Ending(Box::new(self.data(message)?))),
            follow_events::FAILED => {
                self.over = true;
                Err(ClientError::Refused(self.data::<ErrorBody>(message)?.error))
            }
            _ => Err(self.log.ask.failed(Problem::Event { name: message.event.clone() })),
        }
    }

    fn piece(&self, message: &Message) -> Result<Piece, ClientError> {
        let FollowOutput { range, stream, at_unix_ns, content } = self.data(message)?;
        let bytes = match content {
            wire::Bytes::Text(text) => text.into_bytes(),
            wire::Bytes::Base64(text) => base64_simd::STANDARD
                .decode_to_vec(&text)
                .map_err(|_| self.log.ask.failed(Problem::Base64))?,
        };
        Ok(Piece { range, stream, at_unix_ns, bytes })
    }

    fn data<T: DeserializeOwned>(&self, message: &Message) -> Result<T, ClientError> {
        let data = message.data.as_str();
        let problem = |source| Problem::Json { text: excerpt(data.as_bytes()), source };
        serde_json::from_str(data).map_err(|source| self.log.ask.failed(problem(source)))
    }
}
