//! Input and output of a process over one WebSocket.

use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::client::Request;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::http::header::AUTHORIZATION;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::connection::{Stream, connect};
use crate::request::{ApiRequest, process_path, refusal};
use crate::wire::{AttachNotice, AttachQuery, AttachRequest};
use crate::{Address, ClientError, Problem};

/// Attached to a process. A broken connection does not affect the process; a client that attaches
/// again at the cursor misses nothing and sees nothing twice. Neither direction waits for the other.
#[derive(Debug)]
pub struct Attached {
    pub reader: AttachedReader,
    pub writer: AttachedWriter,
    /// How many bytes of input had been accepted when this attached; `None` when none is taken.
    pub accepted: Option<u64>,
}

/// What comes from the process.
#[derive(Debug)]
pub struct AttachedReader {
    stream: SplitStream<Socket>,
    ask: ApiRequest,
    cursor: u64,
}

/// What goes to it.
#[derive(Debug)]
pub struct AttachedWriter {
    sink: SplitSink<Socket, Message>,
    ask: ApiRequest,
}

type Socket = WebSocketStream<Box<dyn Stream>>;

/// Sent at once. A message may have 1 MiB; small ones let others in between.
const PIECE: usize = 64 << 10;

/// What the server sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FromProcess {
    Output(Bytes),
    Notice(AttachNotice),
}

impl Attached {
    pub(crate) async fn open(
        address: &Address,
        id: &str,
        query: &AttachQuery,
    ) -> Result<Self, ClientError> {
        let ask = ApiRequest::get(process_path(id, "/attach")).query(query);
        let request = request(address, &ask.target).map_err(|error| failed(&ask, error))?;
        let stream = connect(address).await?;
        let opened = client_async(request, stream).await;
        let opened = opened.map_err(|error| refused_or_failed(address, &ask, error));
        let (sink, stream) = opened?.0.split();
        let mut reader = AttachedReader { stream, ask: ask.clone(), cursor: 0 };
        match reader.next().await? {
            Some(FromProcess::Notice(AttachNotice::Attached { cursor, accepted })) => {
                reader.cursor = cursor;
                Ok(Self { reader, writer: AttachedWriter { sink, ask }, accepted })
            }
            _ => Err(ask.failed(Problem::Ended)),
        }
    }
}

impl AttachedReader {
    /// Behind the last byte that came: where to attach again.
    pub fn cursor(&self) -> u64 {
        self.cursor
    }

    /// Waits for what comes next; `None` when that is nothing. Cancel-safe.
    pub async fn next(&mut self) -> Result<Option<FromProcess>, ClientError> {
        while let Some(message) = self.stream.next().await {
            match message.map_err(|error| failed(&self.ask, error))? {
                Message::Binary(bytes) => {
                    self.cursor += bytes.len() as u64;
                    return Ok(Some(FromProcess::Output(bytes)));
                }
                Message::Text(text) => return self.notice(&text).map(Some),
                Message::Close(_) => return Ok(None),
                Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
            }
        }
        Ok(None)
    }

    fn notice(&mut self, text: &str) -> Result<FromProcess, ClientError> {
        let notice = self.ask.decode(text.as_bytes())?;
        if let AttachNotice::Dropped { range } = &notice {
            self.cursor = range.end;
        }
        Ok(FromProcess::Notice(notice))
    }
}

impl AttachedWriter {
    /// Bytes for standard input. Waits while the command does not read.
    pub async fn write(&mut self, bytes: impl Into<Bytes>) -> Result<(), ClientError> {
        let mut bytes = bytes.into();
        while !bytes.is_empty() {
            let piece = bytes.split_to(bytes.len().min(PIECE));
            self.send(Message::Binary(piece)).await?;
        }
        Ok(())
    }

    pub async fn request(&mut self, request: AttachRequest) -> Result<(), ClientError> {
        self.send(Message::text(self.ask.encode(&request)?)).await
    }

    /// Says that no more comes. The server has taken all of it when the reader is at its end.
    pub async fn close(mut self) -> Result<(), ClientError> {
        self.sink.close().await.map_err(|error| failed(&self.ask, error))
    }

    async fn send(&mut self, message: Message) -> Result<(), ClientError> {
        self.sink.send(message).await.map_err(|error| failed(&self.ask, error))
    }
}

fn request(address: &Address, path: &str) -> Result<Request, tungstenite::Error> {
    let mut request = format!("ws://localhost{path}").into_client_request()?;
    if let Some(token) = address.token() {
        let value = HeaderValue::try_from(format!("Bearer {token}"))?;
        request.headers_mut().insert(AUTHORIZATION, value);
    }
    Ok(request)
}

fn refused_or_failed(
    address: &Address,
    ask: &ApiRequest,
    error: tungstenite::Error,
) -> ClientError {
    match error {
        tungstenite::Error::Http(response) => {
            let status = response.status();
            refusal(address, status, &response.into_body().unwrap_or_default())
        }
        error => failed(ask, error),
    }
}

fn failed(ask: &ApiRequest, error: tungstenite::Error) -> ClientError {
    ask.failed(Box::new(error))
}
