//! The feed: what happens to processes, in one order, over however many connections.

use http_body_util::BodyExt;
use hyper::Response;
use hyper::body::Incoming;
use serde::Serialize;

use crate::client::read;
use crate::connection::{Connection, Unanswered};
use crate::error::excerpt;
use crate::request::Ask;
use crate::sse::{Message, Messages};
use crate::wire::Event;
use crate::{Address, ClientError, Problem};

/// Reads the feed; when the connection breaks it goes on behind the last event that it gave.
#[derive(Debug)]
pub struct Events {
    address: Address,
    ask: Ask,
    last: Option<String>,
    open: Option<Open>,
    /// Nothing has come since the connection was made.
    fruitless: bool,
}

/// What comes next in the feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    Event {
        /// Resumes the feed behind this event.
        id: String,
        event: Event,
    },
    /// Events in between are not kept any more, or were missed.
    Gap,
}

#[derive(Debug)]
struct Open {
    /// Held so that the connection stays.
    _connection: Connection,
    response: Response<Incoming>,
    messages: Messages,
}

#[derive(Serialize)]
struct FeedQuery<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'a str>,
}

impl Events {
    pub(crate) async fn open(address: Address, session: Option<&str>) -> Result<Self, ClientError> {
        let ask = Ask::get("/v1/events").query(&FeedQuery { session });
        let mut events = Self { address, ask, last: None, open: None, fruitless: true };
        events.open = Some(events.connect().await?);
        Ok(events)
    }

    /// Waits for what comes next. Cancel-safe. After an error it can be called again, and tries to
    /// connect again.
    pub async fn next(&mut self) -> Result<News, ClientError> {
        loop {
            let Some(open) = &mut self.open else {
                self.open = Some(self.connect().await?);
                if self.last.is_none() {
                    // Where the feed stood is not known, so neither is what was missed.
                    return Ok(News::Gap);
                }
                continue;
            };
            if let Some(message) = open.messages.next() {
                return self.news(message);
            }
            match open.response.frame().await {
                Some(Ok(frame)) => {
                    self.fruitless = false;
                    open.messages.push(frame.data_ref().map_or(&[], |data| data));
                }
                Some(Err(_)) | None => {
                    self.open = None;
                    // A server that ends every feed at once is not asked for ever.
                    if std::mem::replace(&mut self.fruitless, true) {
                        return Err(self.ask.failed(Problem::Ended));
                    }
                }
            }
        }
    }

    fn news(&mut self, message: Message) -> Result<News, ClientError> {
        let Message { id, event, data } = message;
        if let Some(id) = &id {
            self.last = Some(id.clone());
        }
        if event == "gap" {
            return Ok(News::Gap);
        }
        let problem = |source| Problem::Json { text: excerpt(data.as_bytes()), source };
        let event =
            serde_json::from_str(&data).map_err(|source| self.ask.failed(problem(source)))?;
        Ok(News::Event { id: id.unwrap_or_default(), event })
    }

    async fn connect(&self) -> Result<Open, ClientError> {
        let ask = match &self.last {
            Some(last) => self.ask.clone().header("last-event-id", last),
            None => self.ask.clone(),
        };
        let mut connection = Connection::open(&self.address, &ask).await?;
        let response = connection.send(&self.address, &ask).await;
        let response = response.map_err(|unanswered| match unanswered {
            Unanswered::NotSent => ask.failed(Problem::Ended),
            Unanswered::MaybeSent(error) => error,
        })?;
        match response.status().is_success() {
            true => Ok(Open { _connection: connection, response, messages: Messages::default() }),
            false => Err(read(&ask, response)
                .await
                .map_or_else(|error| error, |_| ask.failed(Problem::Ended))),
        }
    }
}
