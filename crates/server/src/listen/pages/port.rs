//! The port at which pages are served: one of the server's own, or else one on the loopback interface
//! that is opened for the first link and closed after the last page.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use super::Kept;
use crate::listen::auth::{AcceptedTokens, Access};
use crate::listen::created_tokens::CreatedTokens;
use crate::listen::listener::{Listener, bind_tcp};
use crate::listen::token::Token;

#[derive(Debug)]
pub(super) struct PagePort {
    own: Mutex<Vec<SocketAddr>>,
    /// What the tokens of an opened port are made of; `None` if none can be opened.
    tokens: Option<(PathBuf, Arc<CreatedTokens>)>,
    opened: Mutex<Opened>,
    /// The port that is open; its listener ends when it is another.
    open: watch::Sender<Option<u16>>,
    listeners: (mpsc::UnboundedSender<PageListener>, tokio::sync::Mutex<Incoming>),
}

type Incoming = mpsc::UnboundedReceiver<PageListener>;

#[derive(Debug)]
struct Opened {
    /// The last one, to open it again.
    number: Option<u16>,
    at: Instant,
    /// The worker before had it open, and we have not opened it yet.
    is_owed: bool,
}

/// A listener for pages, and how it knows its end.
#[derive(Debug)]
pub(in crate::listen) struct PageListener {
    pub(in crate::listen) listener: Listener,
    number: u16,
    open: watch::Receiver<Option<u16>>,
}

impl PageListener {
    /// Waits until no page is left.
    pub(in crate::listen) async fn until_closed(number: (u16, watch::Receiver<Option<u16>>)) {
        let (number, mut open) = number;
        _ = open.wait_for(|open| *open != Some(number)).await.map(drop);
    }

    pub(in crate::listen) fn into_parts(self) -> (Listener, (u16, watch::Receiver<Option<u16>>)) {
        (self.listener, (self.number, self.open))
    }
}

/// How often a port that is still taken is tried again, and for how long.
const AGAIN: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(10);

impl Default for PagePort {
    fn default() -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        Self {
            own: Mutex::default(),
            tokens: None,
            opened: Mutex::new(Opened { number: None, at: Instant::now(), is_owed: false }),
            open: watch::Sender::new(None),
            listeners: (sender, tokio::sync::Mutex::new(receiver)),
        }
    }
}

impl PagePort {
    /// With the port of the worker before.
    pub(super) fn new(state: PathBuf, created: Arc<CreatedTokens>, number: Option<u16>) -> Self {
        let opened = Opened { number, at: Instant::now(), is_owed: number.is_some() };
        Self { tokens: Some((state, created)), opened: Mutex::new(opened), ..Self::default() }
    }

    pub(super) fn set_own(&self, addresses: Vec<SocketAddr>) {
        *self.own.lock().unwrap_or_else(PoisonError::into_inner) = addresses;
    }

    /// The port to open again after a take-over.
    pub(super) fn number(&self) -> Option<u16> {
        *self.open.borrow()
    }

    /// Where a browser on this machine finds the page. Must be called on a runtime.
    pub(super) fn open(&self) -> io::Result<SocketAddr> {
        if let Some(own) = self.own_address() {
            return Ok(own);
        }
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = *self.open.borrow() {
            opened.at = Instant::now();
            return Ok(loopback(number));
        }
        let again = opened.number.and_then(|number| self.listen(number).ok());
        let number = match again {
            Some(number) => number,
            None => self.listen(0)?,
        };
        *opened = Opened { number: Some(number), at: Instant::now(), is_owed: false };
        Ok(loopback(number))
    }

    fn own_address(&self) -> Option<SocketAddr> {
        let own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        let near = |address: &&SocketAddr| address.ip().is_loopback();
        let address = *own.iter().find(near).or_else(|| own.first())?;
        Some(match address.ip() {
            IpAddr::V4(Ipv4Addr::UNSPECIFIED) => loopback(address.port()),
            IpAddr::V6(Ipv6Addr::UNSPECIFIED) => {
                SocketAddr::new(Ipv6Addr::LOCALHOST.into(), address.port())
            }
            IpAddr::V4(_) | IpAddr::V6(_) => address,
        })
    }

    /// On this port of the loopback interface; 0 is one that is free. Requires a token whatever the
    /// server's own ports require.
    fn listen(&self, number: u16) -> io::Result<u16> {
        let Some((state, created)) = &self.tokens else {
            return Err(io::Error::other("the server has no port, and cannot open one"));
        };
        let token = Token::read_or_create(state).map_err(io::Error::other)?;
        let access = Access::Token(Arc::new(AcceptedTokens::new(token).and(Arc::clone(created))));
        let bound = bind_tcp(loopback(number)).map_err(io::Error::other)?;
        let number = bound.local_addr()?.port();
        let listener = Listener::handed_over_tcp(bound, access).map_err(io::Error::other)?;
        self.open.send_replace(Some(number));
        // Without a server there is nobody to accept.
        _ = self.listeners.0.send(PageListener { listener, number, open: self.open.subscribe() });
        Ok(number)
    }

    /// Those that links open, and first that of the worker before. Cancel-safe.
    pub(super) async fn next_listener(&self) -> PageListener {
        let began = Instant::now();
        while self.is_owed(began) {
            sleep_until(Instant::now() + AGAIN).await;
        }
        let mut listeners = self.listeners.1.lock().await;
        match listeners.recv().await {
            Some(listener) => listener,
            None => std::future::pending().await,
        }
    }

    /// Whether the port of the worker before cannot be opened yet: it may be about to end.
    fn is_owed(&self, began: Instant) -> bool {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(number) = opened.number.filter(|_| opened.is_owed) else { return false };
        opened.is_owed = self.listen(number).is_err() && began.elapsed() < PATIENCE;
        opened.is_owed
    }

    /// Returns when it may be closed, if it is open.
    pub(super) fn close_if_unused(
        &self,
        kept: &Kept,
        unused: Duration,
        now: Instant,
    ) -> Option<Instant> {
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        (*self.open.borrow())?;
        let last = kept.tokens.iter().map(|token| token.usage.unused_since());
        // A page in use, or a link that may still be used.
        let last = last.collect::<Option<Vec<Instant>>>().filter(|_| !kept.has_links())?;
        let due = last.into_iter().chain([opened.at]).max()? + unused;
        if due > now {
            return Some(due);
        }
        self.open.send_replace(None);
        None
    }
}

fn loopback(number: u16) -> SocketAddr {
    SocketAddr::new(Ipv4Addr::LOCALHOST.into(), number)
}
