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
use crate::error::{excerpt, refused};
use crate::query::query;
use crate::request::process_path;
use crate::wire::{AttachNotice, AttachQuery, AttachRequest};
use crate::{Address, ClientError, Problem};

/// Attached to a process. A broken connection does not affect the process; a client that attaches
/// again at the cursor misses nothing and sees nothing twice.
#[derive(Debug)]
pub struct Attached {
    reader: AttachedReader,
    writer: AttachedWriter,
    accepted: Option<u64>,
}

/// What comes from the process.
#[derive(Debug)]
pub struct AttachedReader {
    stream: SplitStream<Socket>,
    asked: String,
    cursor: u64,
}

/// What goes to it.
#[derive(Debug)]
pub struct AttachedWriter {
    sink: SplitSink<Socket, Message>,
    asked: String,
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
        asked: &AttachQuery,
    ) -> Result<Self, ClientError> {
        let path = format!("{}{}", process_path(id, "/attach"), query(asked));
        let asked = format!("GET {path}");
        let request = request(address, &path).map_err(|error| failed(&asked, error))?;
        let stream = connect(address).await?;
        let opened = client_async(request, stream).await;
        let (socket, _) = opened.map_err(|error| refused_or_failed(&asked, error))?;
        let (sink, stream) = socket.split();
        let mut reader = AttachedReader { stream, asked: asked.clone(), cursor: 0 };
        let writer = AttachedWriter { sink, asked };
        match reader.next().await? {
            Some(FromProcess::Notice(AttachNotice::Attached { cursor, accepted })) => {
                reader.cursor = cursor;
                Ok(Self { reader, writer, accepted })
            }
            _ => Err(reader.failed(Problem::Ended)),
        }
    }

    /// Behind the last byte that came: where to attach again.
    pub fn cursor(&self) -> u64 {
        self.reader.cursor()
    }

    /// How many bytes of input had been accepted when this attached; `None` when none is taken.
    pub fn accepted(&self) -> Option<u64> {
        self.accepted
    }

    /// Waits for what comes next; `None` when that is nothing. Cancel-safe.
    pub async fn next(&mut self) -> Result<Option<FromProcess>, ClientError> {
        self.reader.next().await
    }

    /// Bytes for standard input. Waits while the command does not read.
    pub async fn write(&mut self, bytes: impl Into<Bytes>) -> Result<(), ClientError> {
        self.writer.write(bytes).await
    }

    pub async fn request(&mut self, request: AttachRequest) -> Result<(), ClientError> {
        self.writer.request(request).await
    }

    /// Both directions apart, so that neither waits for the other.
    pub fn split(self) -> (AttachedReader, AttachedWriter) {
        (self.reader, self.writer)
    }
}

impl AttachedReader {
    /// As [`Attached::cursor`].
    pub fn cursor(&self) -> u64 {
        self.cursor
    }

    /// As [`Attached::next`].
    pub async fn next(&mut self) -> Result<Option<FromProcess>, ClientError> {
        while let Some(message) = self.stream.next().await {
            match message.map_err(|error| failed(&self.asked, error))? {
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
        let json = |source| Problem::Json { text: excerpt(text.as_bytes()), source };
        let notice = serde_json::from_str(text).map_err(|error| self.failed(json(error)))?;
        if let AttachNotice::Dropped { range } = &notice {
            self.cursor = range.end;
        }
        Ok(FromProcess::Notice(notice))
    }

    fn failed(&self, source: Problem) -> ClientError {
        ClientError::Protocol { asked: self.asked.clone(), source }
    }
}

impl AttachedWriter {
    /// As [`Attached::write`].
    pub async fn write(&mut self, bytes: impl Into<Bytes>) -> Result<(), ClientError> {
        let mut bytes = bytes.into();
        while !bytes.is_empty() {
            let piece = bytes.split_to(bytes.len().min(PIECE));
            self.send(Message::Binary(piece)).await?;
        }
        Ok(())
    }

    pub async fn request(&mut self, request: AttachRequest) -> Result<(), ClientError> {
        let json = |source| ClientError::Protocol {
            asked: self.asked.clone(),
            source: Problem::Json { text: "the request itself".into(), source },
        };
        let text = serde_json::to_string(&request).map_err(json)?;
        self.send(Message::text(text)).await
    }

    /// Says that no more comes. The server has taken all of it when the reader is at its end.
    pub async fn close(mut self) -> Result<(), ClientError> {
        self.sink.close().await.map_err(|error| failed(&self.asked, error))
    }

    async fn send(&mut self, message: Message) -> Result<(), ClientError> {
        self.sink.send(message).await.map_err(|error| failed(&self.asked, error))
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

fn refused_or_failed(asked: &str, error: tungstenite::Error) -> ClientError {
    match error {
        tungstenite::Error::Http(response) => {
            let status = response.status().as_u16();
            let body = response.into_body().unwrap_or_default();
            refused(&body).unwrap_or_else(|| ClientError::Protocol {
                asked: asked.to_owned(),
                source: Problem::Status { status, text: excerpt(&body) },
            })
        }
        error => failed(asked, error),
    }
}

fn failed(asked: &str, error: tungstenite::Error) -> ClientError {
    ClientError::Protocol { asked: asked.to_owned(), source: Problem::WebSocket(Box::new(error)) }
}
