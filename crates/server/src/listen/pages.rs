//! Links that open the page in a browser, and the tokens that pages trade them for.
//!
//! A link is traded once, for a token that ends when it was not used for a while. A link that hands over
//! the keyboard of a process gives a token that ends when the person is done. `kept` is what the next
//! worker needs of them, in a file with hashes alone; `usage` knows which tokens are in use, `tickets`
//! open WebSockets, and `port` is the port of a server that has no other.

mod kept;
mod port;
mod tickets;
mod usage;

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use lastbyte_engine::Id;
use lastbyte_wire::{Error, ErrorCode, HandOverEnd};
use tokio::sync::{Notify, watch};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep_until};

use super::created_tokens::{CreatedTokens, hash};
use super::failed_tokens::FailedTokens;
use super::peer::Peer;
use super::scope::{Grant, May, PageGrant, Scope, TokenLife};
use super::token::random_text;
use crate::to_wire::unix_ns;
use kept::{KeptFile, KeptLink, KeptScope, KeptToken};
use port::PagePort;
use tickets::Tickets;

pub(crate) use kept::Kept;
pub(super) use port::PageListener;
pub(super) use usage::InUse;

/// The links and pages of a server.
#[derive(Debug)]
pub struct Pages {
    kept: watch::Sender<Kept>,
    /// Held while `kept` is changed.
    file: Mutex<KeptFile>,
    times: PageTimes,
    /// `None` for a server whose tokens cannot be managed.
    created: Option<Arc<CreatedTokens>>,
    tickets: Tickets,
    failed: FailedTokens,
    port: PagePort,
    /// Something is due at another time than before.
    due: Arc<Notify>,
}

/// How long what is valid.
#[derive(Debug, Clone, Copy)]
pub struct PageTimes {
    /// The token of a page that is not used.
    pub unused: Duration,
    /// The token of a person to whom a keyboard was handed over, and who has left.
    pub left: Duration,
    /// The port of a server that has no other, without a page in use.
    pub port: Duration,
}

impl Default for PageTimes {
    fn default() -> Self {
        Self {
            unused: Duration::from_secs(12 * 3600),
            left: Duration::from_secs(60),
            port: Duration::from_secs(600),
        }
    }
}

/// What was traded for a link.
#[derive(Debug)]
pub(crate) struct Traded {
    pub(crate) token: String,
    pub(crate) scope: Scope,
    pub(crate) hand_over: bool,
}

/// Whether the keyboard of a process is in the hands of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandOver {
    /// The link can be used, or was, and the person is not done.
    Open,
    /// How the last one ended, if there was one.
    Over(Option<HandOverEnd>),
}

/// Every token of a page begins with this, so that others are not hashed.
const PREFIX: &str = "lbp_";
/// More links or pages would be made by mistake.
const MOST: usize = 1000;

impl Pages {
    /// Of a server that cannot be taken over.
    pub fn in_memory() -> Self {
        Self::new(Kept::default(), KeptFile::none(), PageTimes::default(), None)
    }

    /// Of a state folder. Only a worker that takes over keeps what the one before has left.
    pub fn open(
        state: &Path,
        takes_over: bool,
        times: PageTimes,
        created: Arc<CreatedTokens>,
    ) -> io::Result<Self> {
        let file = KeptFile::in_folder(state);
        let kept =
            if takes_over { file.read() } else { file.remove().map(|()| Kept::default())? };
        let port = PagePort::new(state.to_owned(), Arc::clone(&created), kept.port);
        Ok(Self { port, ..Self::new(kept, file, times, Some(created)) })
    }

    fn new(
        kept: Kept,
        file: KeptFile,
        times: PageTimes,
        created: Option<Arc<CreatedTokens>>,
    ) -> Self {
        Self {
            kept: watch::Sender::new(kept),
            file: Mutex::new(file),
            times,
            created,
            tickets: Tickets::default(),
            failed: FailedTokens::default(),
            port: PagePort::default(),
            due: Arc::default(),
        }
    }

    /// Where pages are served: one of the server's own ports, or one that is opened now.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        let address = self.port.open()?;
        if self.kept.borrow().port != self.port.number() {
            self.change(|kept| kept.port = self.port.number())?;
        }
        Ok(address)
    }

    /// A new link for a page with this scope; its secret, and when it expires. Blocks while a file is
    /// written.
    pub(crate) fn create_link(
        &self,
        issuer: &Grant,
        scope: &Scope,
        (hand_over, lasts): (bool, Duration),
    ) -> io::Result<(String, SystemTime)> {
        let secret = random_text()?;
        let expires = SystemTime::now() + lasts;
        let link = KeptLink {
            sha256: hash(secret.as_bytes()),
            scope: KeptScope::from(scope),
            hand_over,
            parent: issuer.created_id().map(str::to_owned),
            expires_unix_ns: unix_ns(expires),
        };
        self.change(|kept| kept.add_link(link, MOST))??;
        self.due.notify_one();
        Ok((secret, expires))
    }

    /// The token for a link, which works once. Blocks while a file is written.
    pub(crate) fn trade(&self, secret: &str, peer: Option<&Peer>) -> Result<Traded, Error> {
        let (sha256, now) = (hash(secret.as_bytes()), unix_ns(SystemTime::now()));
        // Anybody who can connect may try, and must not make us write a file.
        if !self.kept.borrow().has_link(&sha256, now) {
            return Err(self.gone(peer));
        }
        let failed = |error: io::Error| {
            Error::new(ErrorCode::Failed, format!("cannot trade the link: {error}"))
        };
        let (id, secret) = (random_text().map_err(failed)?, random_text().map_err(failed)?);
        let token = format!("{PREFIX}{secret}");
        let traded = self.change(|kept| {
            let link = kept.take_link(&sha256, now)?;
            let scope = link.scope.to_scope()?;
            if link.parent.as_deref().is_some_and(|parent| self.parent(parent).is_none()) {
                return None;
            }
            let KeptLink { scope: kept_scope, hand_over, parent, .. } = link;
            let sha256 = hash(token.as_bytes());
            kept.tokens.push(KeptToken::new((id, sha256), kept_scope, hand_over, parent));
            Some((scope, hand_over))
        });
        let (scope, hand_over) = traded.map_err(failed)?.ok_or_else(|| self.gone(peer))?;
        self.due.notify_one();
        Ok(Traded { token, scope, hand_over })
    }

    fn gone(&self, peer: Option<&Peer>) -> Error {
        let too_many = match peer {
            Some(Peer::Tcp(address)) => self.failed.count(address.ip(), std::time::Instant::now()),
            Some(Peer::Unix { .. } | Peer::Carried) | None => false,
        };
        if too_many {
            let message = "too many requests with a wrong link came from this address";
            return Error::new(ErrorCode::TooManyFailedTokens, message)
                .hint("wait a minute, or get a new link");
        }
        Error::new(ErrorCode::LinkGone, "this link was used before, has expired or never existed")
            .hint("get a new one with `lastbyte open`")
    }

    /// Whether this looks like the token of a page.
    pub(super) fn is_token(given: &[u8]) -> bool {
        given.starts_with(PREFIX.as_bytes())
    }

    /// What this token allows now.
    pub(super) fn find(&self, given: &[u8]) -> Option<Grant> {
        if !Self::is_token(given) {
            return None;
        }
        let sha256 = hash(given);
        let kept = self.kept.borrow();
        // A comparison of hashes tells nothing of the secret by the time it takes.
        let token = kept.tokens.iter().find(|token| token.sha256 == sha256)?;
        let parent = match &token.parent {
            Some(parent) => Some(self.parent(parent)?),
            None => None,
        };
        let scope = token.scope.to_scope()?;
        let id = token.id.clone();
        let life = TokenLife::Page { id: id.clone(), pages: self.kept.subscribe(), parent };
        let hand_over = scope.only().filter(|_| token.hand_over);
        let _in_use = InUse::begin(&token.usage, &self.due);
        Some(Grant { scope, life: Some(life), page: Some(PageGrant { id, hand_over, _in_use }) })
    }

    fn parent(&self, id: &str) -> Option<super::scope::CreatedLife> {
        self.created.as_ref()?.life_of(id)
    }

    /// A ticket that opens one WebSocket with this grant, and when it expires.
    pub(crate) fn create_ticket(&self, grant: &Grant) -> io::Result<(String, SystemTime)> {
        let created = self.tickets.create(grant)?;
        self.due.notify_one();
        Ok(created)
    }

    /// The grant of this ticket, which works once.
    pub(super) fn redeem(&self, ticket: &str) -> Option<Grant> {
        self.tickets.redeem(ticket, Instant::now())
    }

    /// The person to whom a keyboard was handed over is done. Blocks while a file is written.
    pub(crate) fn done(&self, page: &PageGrant) -> io::Result<()> {
        self.change(|kept| kept.end_hand_over(&page.id, HandOverEnd::Done))
    }

    /// Whether the keyboard of this process is handed over.
    pub(crate) fn hand_over(&self, process: Id) -> HandOver {
        self.kept.borrow().hand_over(&process.to_string())
    }

    /// Waits until it may be another. Cancel-safe.
    pub(crate) fn changes(&self) -> watch::Receiver<Kept> {
        self.kept.subscribe()
    }

    /// Ports of the server's own.
    pub fn served_at(&self, addresses: Vec<SocketAddr>) {
        self.port.set_own(addresses);
    }

    /// The port of the worker before, and those that links open.
    pub(super) async fn next_listener(&self) -> PageListener {
        self.port.next_listener().await
    }

    /// Removes what has expired or is not used, for as long as the server runs.
    pub(super) async fn tend(self: Arc<Self>) {
        loop {
            let own = Arc::clone(&self);
            // If it fails, the next time removes more.
            let next = spawn_blocking(move || own.remove_unused()).await.ok().flatten();
            let next = next.unwrap_or_else(|| Instant::now() + Duration::from_secs(3600));
            tokio::select! {
                () = sleep_until(next) => {}
                () = self.due.notified() => {}
            }
        }
    }

    /// Returns when something may be due next.
    fn remove_unused(&self) -> Option<Instant> {
        let (now, wall) = (Instant::now(), SystemTime::now());
        let tickets = self.tickets.remove_expired(now);
        let is_due = {
            let kept = self.kept.borrow();
            kept.next_due(&self.times, now, wall).is_some_and(|due| due <= now)
        };
        if is_due {
            // In memory it is removed, also if the disk is full.
            _ = self.change(|kept| kept.remove_due(&self.times, now, wall));
        }
        let kept = self.kept.borrow().clone();
        let port = self.port.close_if_unused(&kept, self.times.port, now);
        if kept.port.is_some() && port.is_none() && self.port.number().is_none() {
            // A page that is still open would show its token to the next program with this port.
            _ = self.change(|kept| {
                kept.port = None;
                kept.tokens.retain(|token| token.usage.unused_since().is_none());
            });
        }
        [tickets, port, kept.next_due(&self.times, now, wall)].into_iter().flatten().min()
    }

    /// In memory also if the file cannot be written.
    fn change<T>(&self, change: impl FnOnce(&mut Kept) -> T) -> io::Result<T> {
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let mut kept = self.kept.borrow().clone();
        let changed = change(&mut kept);
        let written = file.write(&kept);
        self.kept.send_replace(kept);
        written.map(|()| changed)
    }
}

impl Scope {
    /// That of a page for this process, if a client with this scope asks for it.
    pub(crate) fn of_process(&self, id: Id) -> Self {
        let may = if self.only_reads() { May::Read } else { May::Write };
        Self::Process { id, may }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_link_writes_nothing() {
        let state = tempfile::tempdir().unwrap();
        let created = Arc::new(CreatedTokens::open(state.path()).unwrap());
        let pages = Pages::open(state.path(), false, PageTimes::default(), created).unwrap();
        assert_eq!(pages.trade("wrong", None).unwrap_err().code, ErrorCode::LinkGone);
        assert!(!state.path().join("pages").exists());
    }
}
