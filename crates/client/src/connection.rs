//! One HTTP/1.1 connection to a server.

use bytes::Bytes;
use http_body_util::Full;
use hyper::Response;
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::rt::{Read, Write};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpStream, UnixStream};

use crate::request::Ask;
use crate::{Address, ClientError};

/// Our end of a connection; dropping it closes the connection.
#[derive(Debug)]
pub(crate) struct Connection(SendRequest<Full<Bytes>>);

/// A request has no answer.
#[derive(Debug)]
pub(crate) enum Unanswered {
    /// The connection was closed before anything was written to it.
    NotSent,
    /// The server may have carried it out.
    MaybeSent(ClientError),
}

impl Connection {
    pub(crate) async fn open(address: &Address, ask: &Ask) -> Result<Self, ClientError> {
        let refused = |source| ClientError::Connect { address: address.clone(), source };
        match address {
            Address::Unix(path) => {
                Self::on(UnixStream::connect(path).await.map_err(refused)?, ask).await
            }
            Address::Tcp { addr, .. } => {
                let stream = TcpStream::connect(addr).await.map_err(refused)?;
                // Requests are small and written at once; one that cannot be hurried still goes.
                _ = stream.set_nodelay(true);
                Self::on(stream, ask).await
            }
        }
    }

    async fn on<S>(stream: S, ask: &Ask) -> Result<Self, ClientError>
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin + 'static,
        TokioIo<S>: Read + Write,
    {
        let (sender, connection) =
            handshake(TokioIo::new(stream)).await.map_err(|error| ask.failed(error))?;
        // Ends with the connection; what goes wrong is told to whoever waits for an answer.
        tokio::spawn(async move { _ = connection.await });
        Ok(Self(sender))
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
        ask: &Ask,
    ) -> Result<Response<Incoming>, Unanswered> {
        let request = ask.request(address).map_err(Unanswered::MaybeSent)?;
        self.0.try_send_request(request).await.map_err(|mut error| match error.take_message() {
            Some(_) => Unanswered::NotSent,
            None => Unanswered::MaybeSent(ask.failed(error.into_error())),
        })
    }
}
