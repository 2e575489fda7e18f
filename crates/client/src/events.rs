//! The feed: what happens to processes, in one order.

use crate::sse::Message;
use crate::subscription::{Received, Subscription};
use crate::wire::Event;
use crate::{ClientError, Problem};

/// Reads the feed; when the connection breaks it goes on behind the last event that it gave.
#[derive(Debug)]
pub struct Events {
    pub(crate) feed: Subscription,
}

/// What comes next in the feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    Event {
        /// Resumes the feed behind this event.
        id: String,
        event: Box<Event>,
    },
    /// Events in between are not kept any more, or were missed.
    Gap,
}

impl Events {
    /// Waits for what comes next. Cancel-safe. After an error it can be called again, and tries to
    /// connect again.
    pub async fn next(&mut self) -> Result<News, ClientError> {
        loop {
            match self.feed.next().await? {
                Received::Message(message) => return self.news(message),
                // Where the feed stood is not known, so neither is what was missed.
                Received::Reconnected if self.feed.last.is_none() => return Ok(News::Gap),
                Received::Reconnected => {}
                Received::End => return Err(self.feed.ask.failed(Problem::Ended)),
            }
        }
    }

    fn news(&self, message: Message) -> Result<News, ClientError> {
        let Message { id, event, data } = message;
        if event == "gap" {
            return Ok(News::Gap);
        }
        let event = self.feed.ask.decode(data.as_bytes())?;
        Ok(News::Event { id: id.unwrap_or_default(), event })
    }
}
