//! The client: an address, and a connection that is kept for the next request.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::Response;
use hyper::body::Incoming;
use hyper::http::response::Parts;
use serde::de::DeserializeOwned;

use crate::connection::{HttpConnection, Unanswered};
use crate::outage::{Link, Outage};
use crate::request::{ApiRequest, Retry, refusal};
use crate::{Address, ClientError};

/// A client of one server. Concurrent requests have a connection each.
#[derive(Debug)]
pub struct Client {
    pub(crate) link: Link,
    idle: Mutex<Option<HttpConnection>>,
}

impl Client {
    /// A server that listens on this socket file. Nothing is opened yet.
    pub fn unix(path: impl Into<PathBuf>) -> Self {
        Self::to(Address::Unix(path.into()))
    }

    /// A server that listens on this port, and the token that it asks for.
    pub fn tcp(addr: SocketAddr, token: Option<String>) -> Self {
        Self::to(Address::Tcp { addr, token })
    }

    pub fn to(address: Address) -> Self {
        Self { link: Link::new(address), idle: Mutex::new(None) }
    }

    /// How long to wait for a server that has answered before and is away. The default is 10 s.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.link.patience = patience;
        self
    }

    /// Calls this once for each time that the connection was lost and the server answers again.
    #[must_use]
    pub fn on_reconnect(mut self, tell: fn()) -> Self {
        self.link.tell = tell;
        self
    }

    pub fn address(&self) -> &Address {
        &self.link.address
    }

    /// The JSON that answers.
    pub(crate) async fn value<T: DeserializeOwned>(
        &self,
        ask: &ApiRequest,
    ) -> Result<T, ClientError> {
        let (_, body) = self.answer(ask).await?;
        ask.decode(&body)
    }

    /// The whole of an answer that is no error.
    pub(crate) async fn answer(&self, ask: &ApiRequest) -> Result<(Parts, Bytes), ClientError> {
        self.answer_to(|| Ok(Cow::Borrowed(ask))).await
    }

    /// The same for a request that is made anew for each attempt.
    pub(crate) async fn answer_to<'a>(
        &self,
        make: impl Fn() -> Result<Cow<'a, ApiRequest>, ClientError>,
    ) -> Result<(Parts, Bytes), ClientError> {
        let mut outage = Outage::default();
        loop {
            let ask = make()?;
            match self.attempt(&ask).await {
                Err(error @ ClientError::Protocol { .. }) if ask.repeat == Retry::Unsafe => {
                    return Err(error);
                }
                Err(error @ ClientError::Refused(_)) => {
                    outage.answered(&self.link);
                    return Err(error);
                }
                Err(error) => outage.pause(&self.link, error).await?,
                Ok(answer) => {
                    outage.answered(&self.link);
                    return Ok(answer);
                }
            }
        }
    }

    async fn attempt(&self, ask: &ApiRequest) -> Result<(Parts, Bytes), ClientError> {
        let (connection, response) = self.response(ask).await?;
        let answer = read(self.address(), ask, response).await?;
        *self.idle.lock().unwrap_or_else(PoisonError::into_inner) = Some(connection);
        Ok(answer)
    }

    async fn response(
        &self,
        ask: &ApiRequest,
    ) -> Result<(HttpConnection, Response<Incoming>), ClientError> {
        if let Some(mut connection) = self.take_idle().await {
            match connection.send(self.address(), ask).await {
                Ok(response) => return Ok((connection, response)),
                Err(Unanswered::NotSent) => {}
                Err(Unanswered::MaybeSent(error)) => return Err(error),
            }
        }
        HttpConnection::open(self.address(), ask).await
    }

    async fn take_idle(&self) -> Option<HttpConnection> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut connection = idle?;
        connection.is_open().await.then_some(connection)
    }
}

/// Reads an answer to its end, and takes an error for one.
pub(crate) async fn read(
    address: &Address,
    ask: &ApiRequest,
    response: Response<Incoming>,
) -> Result<(Parts, Bytes), ClientError> {
    let (parts, body) = response.into_parts();
    let body = body.collect().await.map_err(|error| ask.failed(error))?.to_bytes();
    if parts.status.is_success() {
        return Ok((parts, body));
    }
    Err(refusal(address, parts.status, &body))
}
