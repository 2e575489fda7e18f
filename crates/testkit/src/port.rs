//! Ports for servers that a test starts by their number.

use std::net::TcpListener;

/// One that nobody listens on, as far as one can know.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.local_addr().expect("what listens has an address").port()
}
