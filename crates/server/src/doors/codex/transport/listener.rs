//! Where clients come to: an address of this machine, or a socket of this user.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::os::unix::net::UnixListener as StdUnixListener;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::ORIGIN;
use axum::http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming as RequestBody;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::time::{Instant, sleep_until};

use super::websocket::{status, upgrade};
use crate::doors::codex::door::Door;

/// How long the head of a request may take.
const HEAD_PATIENCE: Duration = Duration::from_secs(10);
/// The most bytes of it.
const HEAD_BYTES: usize = 16 * 1024;
/// Before the next try when there is no descriptor for a client.
const SHORTAGE: Duration = Duration::from_millis(100);

/// A place that clients come to.
#[derive(Debug)]
pub enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// Why there is none.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    #[error(
        "refusing to start non-loopback websocket listener {0} without auth; only loopback \
         addresses are served"
    )]
    NotLoopback(SocketAddr),
    #[error("cannot listen on {address}")]
    Tcp { address: SocketAddr, source: io::Error },
    #[error("cannot use the socket")]
    Unix(#[source] io::Error),
}

impl Listener {
    /// Only addresses that other machines cannot reach. Must be called on a runtime.
    pub async fn bind(address: SocketAddr) -> Result<Self, BindError> {
        if !address.ip().is_loopback() {
            return Err(BindError::NotLoopback(address));
        }
        let bound = TcpListener::bind(address).await;
        bound.map(Self::Tcp).map_err(|source| BindError::Tcp { address, source })
    }

    /// A socket that the caller has made. Must be called on a runtime.
    pub fn from_unix(socket: StdUnixListener) -> Result<Self, BindError> {
        let listen = || {
            socket.set_nonblocking(true)?;
            UnixListener::from_std(socket)
        };
        listen().map(Self::Unix).map_err(BindError::Unix)
    }

    /// Where it is, if that is an address.
    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(listener) => listener.local_addr().ok(),
            Self::Unix(_) => None,
        }
    }

    /// Serves whoever comes until the door is closed.
    pub async fn serve(self, door: Door) {
        loop {
            tokio::select! {
                taken = self.take(&door) => if taken.is_err() {
                    sleep_until(Instant::now() + SHORTAGE).await;
                },
                () = door.closed() => return,
            }
        }
    }

    async fn take(&self, door: &Door) -> io::Result<()> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                // Answers are small and waited for.
                stream.set_nodelay(true)?;
                tokio::spawn(speak_http(stream, door.clone()));
            }
            Self::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                tokio::spawn(speak_http(stream, door.clone()));
            }
        }
        Ok(())
    }
}

async fn speak_http(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, door: Door) {
    let answer = service_fn(|request| {
        let response = answer(&door, request);
        async { Ok::<_, Infallible>(response) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_PATIENCE)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), answer)
        .with_upgrades();
    // A client that speaks no HTTP, or goes, is its own affair.
    _ = served.await;
}

fn answer(door: &Door, request: Request<RequestBody>) -> Response<Body> {
    let health = matches!(request.uri().path(), "/readyz" | "/healthz");
    // Pages of a browser have nothing to say here.
    if request.headers().contains_key(ORIGIN) {
        status(StatusCode::FORBIDDEN)
    } else if health && request.method() == Method::GET {
        status(StatusCode::OK)
    } else {
        upgrade(door, request)
    }
}
