//! The transports, for tests that must pass on each of them.

use std::net::SocketAddr;

use lastbyte_server::Limits;
use lastbyte_server::doors::codex;
use lastbyte_server::listen::{Access, Hosts, Listener, Server};
use serde_json::json;
use tokio::net::{TcpStream, UnixStream};

use super::client::Client;
use super::fixture::Fixture;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// A pair of pipes, one message per line.
    Lines,
    /// A WebSocket over TCP.
    Tcp,
    /// A WebSocket over a unix socket.
    Unix,
}

impl Transport {
    pub const ALL: [Self; 3] = [Self::Lines, Self::Tcp, Self::Unix];

    /// A client after the handshake.
    pub async fn client(self, fixture: &Fixture) -> Client {
        let mut client = match self {
            Self::Lines => Client::over_lines(&fixture.door),
            Self::Tcp => {
                let address = listen(fixture, Limits::default());
                Client::over_websocket(TcpStream::connect(address).await.unwrap()).await
            }
            Self::Unix => {
                let path = fixture.folder.path().join("socket");
                serve(fixture, Listener::unix(&path).unwrap(), Limits::default());
                Client::over_websocket(UnixStream::connect(&path).await.unwrap()).await
            }
        };
        client.initialize(json!({"experimentalApi": true})).await;
        client
    }
}

/// Listens on a TCP port; returns its address.
pub fn listen(fixture: &Fixture, limits: Limits) -> SocketAddr {
    let listener = Listener::tcp("127.0.0.1:0".parse().unwrap(), Access::Open).unwrap();
    let address = listener.to_string().strip_prefix("http://").unwrap().parse().unwrap();
    serve(fixture, listener, limits);
    address
}

fn serve(fixture: &Fixture, listener: Listener, limits: Limits) {
    let server = Server::new(vec![listener], Hosts::default(), limits);
    let door = fixture.door.clone();
    tokio::spawn(async move {
        server.run(codex::router(door.clone()), door.closed(), std::future::ready(())).await;
    });
}
