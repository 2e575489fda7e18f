//! Server-sent events over however many connections: each goes on behind the last message.

use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::{Response, StatusCode};

use crate::client::read;
use crate::connection::HttpConnection;
use crate::request::ApiRequest;
use crate::sse::{Message, MessageBuffer};
use crate::wire::head;
use crate::{Address, ClientError, Problem};

/// What is asked for again and again, and how far it has come.
#[derive(Debug)]
pub(crate) struct Subscription {
    address: Address,
    pub(crate) ask: ApiRequest,
    /// The id of the last message.
    pub(crate) last: Option<String>,
    open: Option<Open>,
    /// Nothing has come since the connection was made.
    nothing_received: bool,
}

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
    response: Response<Incoming>,
    messages: MessageBuffer,
}

impl Subscription {
    pub(crate) async fn open(address: &Address, ask: ApiRequest) -> Result<Self, ClientError> {
        let address = address.clone();
        let mut own = Self { address, ask, last: None, open: None, nothing_received: true };
        own.open = Some(own.connect().await?);
        Ok(own)
    }

    /// Waits for what comes next. Cancel-safe. After an error it can be called again, and tries to
    /// connect again.
    pub(crate) async fn next(&mut self) -> Result<Received, ClientError> {
        loop {
            let Some(open) = &mut self.open else {
                self.open = Some(self.connect().await?);
                return Ok(Received::Reconnected);
            };
            if let Some(message) = open.messages.next() {
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
                    self.nothing_received = false;
                    open.messages.push(frame.data_ref().map_or(&[], |data| data));
                }
                Some(Err(_)) | None => self.connection_lost()?,
            }
        }
    }

    fn connection_lost(&mut self) -> Result<(), ClientError> {
        self.open = None;
        // A server that ends every answer at once is not asked for ever.
        if std::mem::replace(&mut self.nothing_received, true) {
            return Err(self.ask.failed(Problem::Ended));
        }
        Ok(())
    }

    async fn connect(&self) -> Result<Open, ClientError> {
        let ask = match &self.last {
            Some(last) => self.ask.clone().header(head::LAST_EVENT_ID, last),
            None => self.ask.clone(),
        };
        let (connection, response) = HttpConnection::open(&self.address, &ask).await?;
        if !response.status().is_success() {
            read(&self.address, &ask, response).await?;
            return Err(ask.failed(Problem::Ended));
        }
        Ok(Open { _connection: connection, response, messages: MessageBuffer::default() })
    }
}
