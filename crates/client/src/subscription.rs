//! Server-sent events over however many connections: each goes on behind the last message.

use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::{Response, StatusCode};
use tokio::time::Instant;

use crate::client::read;
use crate::connection::HttpConnection;
use crate::outage::{Link, Outage};
use crate::request::ApiRequest;
use crate::sse::{Message, MessageBuffer};
use crate::wire::head;
use crate::{ClientError, Problem};

/// What is asked for again and again, and how far it has come.
#[derive(Debug)]
pub(crate) struct Subscription {
    link: Link,
    pub(crate) ask: ApiRequest,
    /// The id of the last message, or of the place at which the server began.
    pub(crate) last: Option<String>,
    open: Option<Open>,
    /// Until something comes after the connection was lost.
    outage: Outage,
}

/// A connection that lasted longer was good for something, even if nothing came.
const SHORT: Duration = Duration::from_secs(1);

/// What a subscription hears.
#[derive(Debug)]
pub(crate) enum Received {
    Message(Message),
    /// The connection was lost and made again.
    Reconnected,
    /// The server says that no more will come.
    End,
}

#[derive(Debug)]
struct Open {
    /// Held so that the connection stays.
    _connection: HttpConnection,
    since: Instant,
    response: Response<Incoming>,
    messages: MessageBuffer,
}

impl Subscription {
    pub(crate) async fn open(link: &Link, ask: ApiRequest) -> Result<Self, ClientError> {
        let (link, outage) = (link.clone(), Outage::default());
        let mut own = Self { link, ask, last: None, open: None, outage };
        own.connect().await?;
        Ok(own)
    }

    /// Waits for what comes next, also while the server is away. Cancel-safe. After an error it can be
    /// called again, and tries to connect again.
    pub(crate) async fn next(&mut self) -> Result<Received, ClientError> {
        loop {
            let Some(open) = &mut self.open else {
                self.connect().await?;
                return Ok(Received::Reconnected);
            };
            let message = open.messages.next();
            if let Some(place) = open.messages.place.take() {
                self.last = Some(place);
            }
            if let Some(message) = message {
                if message.id.is_some() {
                    self.last.clone_from(&message.id);
                }
                return Ok(Received::Message(message));
            }
            if open.response.status() == StatusCode::NO_CONTENT {
                return Ok(Received::End);
            }
            match open.response.frame().await {
                Some(Ok(frame)) => {
                    self.outage = Outage::default();
                    open.messages.push(frame.data_ref().map_or(&[], |data| data));
                }
                Some(Err(_)) | None => self.connection_lost().await?,
            }
        }
    }

    /// A server that ends every answer at once is not asked for ever.
    async fn connection_lost(&mut self) -> Result<(), ClientError> {
        let lasted = self.open.take().is_some_and(|open| open.since.elapsed() > SHORT);
        if lasted {
            self.outage = Outage::default();
        }
        let error = self.ask.failed(Problem::Ended);
        self.outage.pause(&self.link, error).await
    }

    async fn connect(&mut self) -> Result<(), ClientError> {
        let ask = match &self.last {
            Some(last) => self.ask.clone().header(head::LAST_EVENT_ID, last),
            None => self.ask.clone(),
        };
        loop {
            match self.attempt(&ask).await {
                Ok(open) => {
                    self.outage.answered(&self.link);
                    self.open = Some(open);
                    return Ok(());
                }
                Err(error) => self.outage.pause(&self.link, error).await?,
            }
        }
    }

    async fn attempt(&self, ask: &ApiRequest) -> Result<Open, ClientError> {
        let (connection, response) = HttpConnection::open(&self.link.address, ask).await?;
        if !response.status().is_success() {
            read(&self.link.address, ask, response).await?;
            return Err(ask.failed(Problem::Ended));
        }
        let (since, messages) = (Instant::now(), MessageBuffer::default());
        Ok(Open { _connection: connection, since, response, messages })
    }
}
