//! Input and output of a process over one WebSocket.

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::client::Request;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::http::header::AUTHORIZATION;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::error::{excerpt, refused};
use crate::query::query;
use crate::request::of_process;
use crate::wire::{AttachNotice, AttachQuery, AttachRequest};
use crate::{Address, ClientError, Problem};

/// Attached to a process. What breaks the connection does nothing to the process; whoever attaches
/// again at the cursor misses nothing and sees nothing twice.
#[derive(Debug)]
pub struct Attached {
    socket: WebSocketStream<Box<dyn Stream>>,
    asked: String,
    cursor: u64,
    accepted: Option<u64>,
}

/// What the server sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FromProcess {
    Output(Bytes),
    Notice(AttachNotice),
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin + std::fmt::Debug {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + std::fmt::Debug> Stream for S {}

impl Attached {
    pub(crate) async fn open(
        address: &Address,
        id: &str,
        asked: &AttachQuery,
    ) -> Result<Self, ClientError> {
        let path = format!("{}{}", of_process(id, "/attach"), query(asked));
        let asked = format!("GET {path}");
        let request = request(address, &path).map_err(|error| failed(&asked, error))?;
        let stream = connect(address).await?;
        let opened = client_async(request, stream).await;
        let (socket, _) = opened.map_err(|error| refused_or_failed(&asked, error))?;
        let mut own = Self { socket, asked, cursor: 0, accepted: None };
        match own.next().await? {
            Some(FromProcess::Notice(AttachNotice::Attached { cursor, accepted })) => {
                Ok(Self { cursor, accepted, ..own })
            }
            _ => Err(own.failed(Problem::Ended)),
        }
    }

    /// Behind the last byte that came: where to attach again.
    pub fn cursor(&self) -> u64 {
        self.cursor
    }

    /// How many bytes of input had been accepted when this attached; `None` when none is taken.
    pub fn accepted(&self) -> Option<u64> {
        self.accepted
    }

    /// Waits for what comes next; `None` when that is nothing. Cancel-safe.
    pub async fn next(&mut self) -> Result<Option<FromProcess>, ClientError> {
        while let Some(message) = self.socket.next().await {
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

    /// Bytes for standard input; at most 1 MiB at once. Waits while the command does not read.
    pub async fn write(&mut self, bytes: impl Into<Bytes>) -> Result<(), ClientError> {
        self.send(Message::Binary(bytes.into())).await
    }

    pub async fn request(&mut self, request: AttachRequest) -> Result<(), ClientError> {
        let json = |source| Problem::Json { text: "the request itself".into(), source };
        let text = serde_json::to_string(&request).map_err(|error| self.failed(json(error)))?;
        self.send(Message::text(text)).await
    }

    async fn send(&mut self, message: Message) -> Result<(), ClientError> {
        self.socket.send(message).await.map_err(|error| failed(&self.asked, error))
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

fn request(address: &Address, path: &str) -> Result<Request, tungstenite::Error> {
    let mut request = format!("ws://localhost{path}").into_client_request()?;
    if let Some(token) = address.token() {
        let value = HeaderValue::try_from(format!("Bearer {token}"))?;
        request.headers_mut().insert(AUTHORIZATION, value);
    }
    Ok(request)
}

async fn connect(address: &Address) -> Result<Box<dyn Stream>, ClientError> {
    let failed = |source| ClientError::Connect { address: address.clone(), source };
    Ok(match address {
        Address::Unix(path) => Box::new(UnixStream::connect(path).await.map_err(failed)?),
        Address::Tcp { addr, .. } => {
            let stream = TcpStream::connect(addr).await.map_err(failed)?;
            // A key that is pressed goes at once; one that cannot be hurried still goes.
            _ = stream.set_nodelay(true);
            Box::new(stream)
        }
    })
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
