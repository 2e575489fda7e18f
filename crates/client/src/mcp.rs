//! Messages of the Model Context Protocol, passed on to the server's `/mcp`.

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::Response;
use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::client::read;
use crate::connection::HttpConnection;
use crate::outage::Outage;
use crate::query::part;
use crate::request::{ApiRequest, Retry};
use crate::sse::MessageBuffer;
use crate::wire::mcp;
use crate::{Client, ClientError, Problem};

/// A message, and what goes with it.
#[derive(Debug, Clone)]
pub struct McpMessage(ApiRequest);

/// Whether a message is sent again when its connection broke before the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum McpRepeat {
    /// Carrying it out twice is the same as once.
    Safe,
    Never,
}

impl McpMessage {
    /// A message as JSON, of this session. The name of the call is the same whenever it is sent.
    pub fn new(body: Bytes, session: &str, call: &str, repeat: McpRepeat) -> Self {
        let retry = match repeat {
            McpRepeat::Safe => Retry::Safe,
            McpRepeat::Never => Retry::Unsafe,
        };
        let ask = ApiRequest::post("/mcp", retry).bytes(body);
        Self(
            ask.header(mcp::STDIO, "1")
                .header(mcp::CALL, call)
                .header(mcp::SESSION, part(session).to_string()),
        )
    }
}

impl Client {
    /// Sends a message, and gives each message of the answer to `take`. Waits for a server that is
    /// away, as other requests do, if the message may be repeated.
    pub async fn mcp(
        &self,
        message: &McpMessage,
        mut take: impl AsyncFnMut(Bytes),
    ) -> Result<(), ClientError> {
        let McpMessage(ask) = message;
        let mut outage = Outage::default();
        loop {
            match self.attempt_mcp(ask, &mut take).await {
                Ok(()) => {
                    outage.answered(&self.link);
                    return Ok(());
                }
                Err(error @ ClientError::Protocol { .. }) if ask.repeat == Retry::Unsafe => {
                    return Err(error);
                }
                Err(error) => outage.pause(&self.link, error).await?,
            }
        }
    }

    async fn attempt_mcp(
        &self,
        ask: &ApiRequest,
        take: &mut impl AsyncFnMut(Bytes),
    ) -> Result<(), ClientError> {
        // Held until the end of the answer.
        let (_connection, response) = HttpConnection::open(self.address(), ask).await?;
        let kind = response.headers().get(CONTENT_TYPE).map(|kind| kind.as_bytes().to_vec());
        match kind.as_deref() {
            Some(b"text/event-stream") => self.pass_on(ask, response, take).await,
            Some(b"application/json") if !response.status().is_success() => {
                let status = response.status();
                let body =
                    response.into_body().collect().await.map_err(|error| ask.failed(error))?;
                let body = body.to_bytes();
                if kind_of(&body) == Some(Kind::Answer) {
                    take(body).await;
                    return Ok(());
                }
                Err(crate::request::refusal(self.address(), status, &body))
            }
            _ => {
                let (_, body) = read(self.address(), ask, response).await?;
                if !body.is_empty() {
                    take(body).await;
                }
                Ok(())
            }
        }
    }

    /// The messages of a stream. One that ends without the answer was cut off.
    async fn pass_on(
        &self,
        ask: &ApiRequest,
        mut response: Response<Incoming>,
        take: &mut impl AsyncFnMut(Bytes),
    ) -> Result<(), ClientError> {
        let mut messages = MessageBuffer::default();
        while let Some(frame) = response.frame().await {
            let frame = frame.map_err(|error| ask.failed(error))?;
            messages.push(frame.data_ref().map_or(&[], |data| data));
            while let Some(message) = messages.next() {
                let body = Bytes::from(message.data);
                let kind = kind_of(&body);
                take(body).await;
                if kind == Some(Kind::Answer) {
                    return Ok(());
                }
            }
        }
        Err(ask.failed(Problem::Ended))
    }
}

/// What a message of the server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Answer,
    Notification,
}

#[derive(Deserialize)]
struct Peeked {
    jsonrpc: Option<IgnoredAny>,
    method: Option<IgnoredAny>,
}

fn kind_of(body: &[u8]) -> Option<Kind> {
    let Peeked { jsonrpc, method } = serde_json::from_slice(body).ok()?;
    jsonrpc?;
    Some(if method.is_some() { Kind::Notification } else { Kind::Answer })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_told_from_a_notification_and_from_an_error_of_the_server() {
        assert_eq!(kind_of(br#"{"jsonrpc":"2.0","id":1,"result":{}}"#), Some(Kind::Answer));
        assert_eq!(kind_of(br#"{"jsonrpc":"2.0","id":1,"error":{}}"#), Some(Kind::Answer));
        let progress = br#"{"jsonrpc":"2.0","method":"notifications/progress"}"#;
        assert_eq!(kind_of(progress), Some(Kind::Notification));
        assert_eq!(kind_of(br#"{"error":{"code":"unauthorized"}}"#), None);
    }
}
