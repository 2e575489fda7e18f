//! One HTTP/1.1 connection to a server.

use bytes::Bytes;
use http_body_util::Full;
use hyper::Response;
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use crate::request::ApiRequest;
use crate::{Address, ClientError, Problem};

/// Our end of a connection; dropping it closes the connection.
#[derive(Debug)]
pub(crate) struct HttpConnection(SendRequest<Full<Bytes>>);

/// A request has no answer.
#[derive(Debug)]
pub(crate) enum Unanswered {
    /// The connection was closed before anything was written to it.
    NotSent,
    /// The server may have carried it out.
    MaybeSent(ClientError),
}

/// A socket of either kind.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin + std::fmt::Debug {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + std::fmt::Debug> Stream for S {}

pub(crate) async fn connect(address: &Address) -> Result<Box<dyn Stream>, ClientError> {
    let failed = |source| ClientError::Connect { address: address.clone(), source };
    Ok(match address {
        Address::Unix(path) => Box::new(UnixStream::connect(path).await.map_err(failed)?),
        Address::Tcp { addr, .. } => {
            let stream = TcpStream::connect(addr).await.map_err(failed)?;
            // Requests and keys are small and go at once; without this they are late, not lost.
            _ = stream.set_nodelay(true);
            Box::new(stream)
        }
    })
}

impl HttpConnection {
    /// A new connection, and the answer to its first request.
    pub(crate) async fn open(
        address: &Address,
        ask: &ApiRequest,
    ) -> Result<(Self, Response<Incoming>), ClientError> {
        let stream = TokioIo::new(connect(address).await?);
        let (sender, connection) = handshake(stream).await.map_err(|error| ask.failed(error))?;
        // Ends with the connection; the caller that waits for an answer gets its errors.
        tokio::spawn(async move { _ = connection.await });
        let mut own = Self(sender);
        match own.send(address, ask).await {
            Ok(response) => Ok((own, response)),
            Err(Unanswered::MaybeSent(error)) => Err(error),
            Err(Unanswered::NotSent) => Err(ask.failed(Problem::Ended)),
        }
    }

    /// Whether the server has not closed it, as far as is known here.
    pub(crate) async fn is_open(&mut self) -> bool {
        // Lets its task see what has come in the meantime: the end, when it was closed while idle.
        tokio::task::yield_now().await;
        self.0.ready().await.is_ok()
    }

    pub(crate) async fn send(
        &mut self,
        address: &Address,
        ask: &ApiRequest,
    ) -> Result<Response<Incoming>, Unanswered> {
        let request = ask.request(address).map_err(Unanswered::MaybeSent)?;
        self.0.try_send_request(request).await.map_err(|mut error| match error.take_message() {
            Some(_) => Unanswered::NotSent,
            None if error.error().is_parse() => Unanswered::MaybeSent(ClientError::Foreign {
                address: address.clone(),
                status: None,
            }),
            None => Unanswered::MaybeSent(ask.failed(error.into_error())),
        })
    }
}
