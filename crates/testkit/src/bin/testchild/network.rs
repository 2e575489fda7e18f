//! Actions with sockets.
//!
//! - `listen PORT`: listens on this port of 127.0.0.1 from here on, and accepts nobody.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Mutex;

use crate::words::Words;

/// Open for as long as the process lives.
static LISTENERS: Mutex<Vec<TcpListener>> = Mutex::new(Vec::new());

pub(crate) fn listen(mut words: Words<'_>) -> io::Result<()> {
    let port: u16 = words.number("PORT")?;
    words.done()?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    LISTENERS.lock().map_err(|_| io::Error::other("a listener broke down"))?.push(listener);
    Ok(())
}
