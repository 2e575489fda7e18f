//! What an admitted request may do, and for how long.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use lastbyte_engine::{Id, Key, Launch, NameUnique, Session};
use lastbyte_wire::{Error, ErrorCode, TokenScope};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::created_tokens::CreatedToken;
use super::pages::{InUse, Kept};
use crate::scoped_key;

/// What a client may see and do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// Everything: clients of the unix socket, and of the server's own token.
    All,
    /// Everything that changes nothing.
    ReadOnly,
    /// The processes of this session. To such a client there are no others.
    Session(Session),
    /// This process alone.
    Process { id: Id, may: May },
}

/// What may be done with a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum May {
    Read,
    /// And write to it.
    Write,
}

/// What a request needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Any token: it tells nothing of processes, or is about the token itself.
    Nothing,
    /// It only reads the process in its path.
    ReadProcess,
    /// It writes to the process in its path.
    WriteProcess,
    /// It only reads, and what it reads of processes is bound to its scope.
    Read,
    /// It starts, changes or removes processes.
    Change,
    /// It reads what is of the whole server.
    ReadServer,
    /// It lets a page in.
    Link,
    /// It changes the server itself, or who may use it.
    Administer,
}

/// The scope of a request, for as long as its token is valid.
#[derive(Debug, Clone)]
pub struct Grant {
    pub scope: Scope,
    /// `None` if it cannot be revoked.
    pub(crate) life: Option<TokenLife>,
    /// `None` unless it is a page's.
    pub page: Option<PageGrant>,
}

/// The token of a page that a request has.
#[derive(Debug, Clone)]
pub struct PageGrant {
    pub(super) id: String,
    /// The process whose keyboard was handed over.
    pub(super) hand_over: Option<Id>,
    pub(super) _in_use: Arc<InUse>,
}

/// How long a token is valid that does not live as long as the server.
#[derive(Debug, Clone)]
pub(crate) enum TokenLife {
    Created(CreatedLife),
    Page {
        id: String,
        pages: watch::Receiver<Kept>,
        /// Of the token that the link was made with.
        parent: Option<CreatedLife>,
    },
}

/// How long a created token is valid.
#[derive(Debug, Clone)]
pub(crate) struct CreatedLife {
    pub(super) id: String,
    pub(super) expires: Option<SystemTime>,
    pub(super) tokens: watch::Receiver<Vec<CreatedToken>>,
}

impl Scope {
    /// The session that everything is bound to; `None` for all of them.
    pub fn within(&self) -> Option<&Session> {
        match self {
            Self::All | Self::ReadOnly | Self::Process { .. } => None,
            Self::Session(session) => Some(session),
        }
    }

    /// The only process that there is; `None` for all of them.
    pub fn only(&self) -> Option<Id> {
        match self {
            Self::All | Self::ReadOnly | Self::Session(_) => None,
            Self::Process { id, .. } => Some(*id),
        }
    }

    /// Whether nothing can be changed.
    pub fn only_reads(&self) -> bool {
        match self {
            Self::ReadOnly | Self::Process { may: May::Read, .. } => true,
            Self::All | Self::Session(_) | Self::Process { may: May::Write, .. } => false,
        }
    }

    /// Refuses what the scope does not allow.
    pub fn check(&self, needs: Needs) -> Result<(), Error> {
        use Needs::{Administer, Change, Link, Read, ReadProcess, ReadServer, WriteProcess};
        match (self, needs) {
            (_, Needs::Nothing | ReadProcess)
            | (Self::All, _)
            | (Self::ReadOnly, Read | ReadServer | Link)
            | (Self::Session(_), Read | WriteProcess | Change | Link)
            | (Self::Process { may: May::Write, .. }, WriteProcess) => Ok(()),
            (Self::ReadOnly, WriteProcess | Change | Administer)
            | (Self::Process { may: May::Read, .. }, WriteProcess) => {
                Err(Error::new(ErrorCode::ReadOnlyToken, "the token is read-only"))
            }
            (Self::Process { id, .. }, Read | Change | ReadServer | Link | Administer) => {
                let message = format!("the token is for the process {id} only");
                Err(Error::new(ErrorCode::PageToken, message)
                    .hint("this request needs another token"))
            }
            (Self::Session(session), ReadServer | Administer) => {
                Err(is_for_session(session).hint("this request needs a token for everything"))
            }
        }
    }

    /// Puts a launch into the session of the scope, with names and keys of its own.
    pub fn bind(&self, launch: &mut Launch) -> Result<(), Error> {
        launch.key = launch.key.take().map(|key| self.key(&key));
        let Self::Session(session) = self else { return Ok(()) };
        if launch.session.as_ref().is_some_and(|asked| asked != session) {
            return Err(is_for_session(session).hint("leave out `session`, or name this one"));
        }
        launch.session = Some(session.clone());
        launch.name_unique = NameUnique::InSession;
        Ok(())
    }

    /// A key as the engine has it. Those of a session are its own.
    pub fn key(&self, key: &Key) -> Key {
        scoped_key::store(key, self.within())
    }
}

fn is_for_session(Session(name): &Session) -> Error {
    Error::new(ErrorCode::SessionToken, format!("the token is for the session {name:?} only"))
}

impl From<&TokenScope> for Scope {
    fn from(scope: &TokenScope) -> Self {
        match scope {
            TokenScope::All => Self::All,
            TokenScope::ReadOnly => Self::ReadOnly,
            TokenScope::Session { name } => Self::Session(Session(name.clone())),
        }
    }
}

impl Grant {
    /// One that nobody can revoke.
    pub fn all() -> Self {
        Self::within(Scope::All)
    }

    /// One with this scope that nobody can revoke.
    pub fn within(scope: Scope) -> Self {
        Self { scope, life: None, page: None }
    }

    /// Refuses what the scope does not allow, and to a page what outlives it or ends the server: it
    /// shows what commands print.
    pub fn check(&self, needs: Needs) -> Result<(), Error> {
        self.scope.check(needs)?;
        match (&self.page, needs) {
            (Some(_), Needs::Administer | Needs::Link) => {
                let message = "the token is of a page, which may not administer the server";
                Err(Error::new(ErrorCode::PageToken, message).hint("use the command line"))
            }
            (Some(_) | None, _) => Ok(()),
        }
    }

    /// The process whose keyboard was handed over by the link of this page.
    pub fn hand_over(&self) -> Option<(&PageGrant, Id)> {
        let page = self.page.as_ref()?;
        Some((page, page.hand_over?))
    }

    /// The id of the created token that it comes from.
    pub(super) fn created_id(&self) -> Option<&str> {
        match self.life.as_ref()? {
            TokenLife::Created(life) => Some(&life.id),
            TokenLife::Page { parent, .. } => parent.as_ref().map(|parent| parent.id.as_str()),
        }
    }

    /// Waits until the token is revoked or has expired.
    pub async fn until_over(self) {
        match self.life {
            Some(TokenLife::Created(life)) => life.until_over().await,
            Some(TokenLife::Page { id, pages, parent: None }) => until_left(id, pages).await,
            Some(TokenLife::Page { id, pages, parent: Some(parent) }) => tokio::select! {
                () = until_left(id, pages) => {}
                () = parent.until_over() => {}
            },
            None => std::future::pending().await,
        }
    }
}

/// Waits until there is no such token of a page.
async fn until_left(id: String, mut pages: watch::Receiver<Kept>) {
    // Without a store there is nobody left to serve.
    _ = pages.wait_for(|kept| kept.token(&id).is_none()).await.map(drop);
}

impl CreatedLife {
    async fn until_over(mut self) {
        let is_gone =
            |tokens: &Vec<CreatedToken>| !tokens.iter().any(|token| token.info.id == self.id);
        let revoked = self.tokens.wait_for(is_gone);
        let now = SystemTime::now();
        let left = self.expires.map(|end| end.duration_since(now).unwrap_or(Duration::ZERO));
        match left.and_then(|left| Instant::now().checked_add(left)) {
            None => _ = revoked.await,
            // Without a store there is nobody left to serve.
            Some(end) => tokio::select! {
                _ = revoked => {}
                () = sleep_until(end) => {}
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(name: &str) -> Scope {
        Scope::Session(Session(name.into()))
    }

    #[test]
    fn a_launch_in_another_session_is_refused_and_one_without_gets_the_tokens() {
        let mut launch = Launch { name: None, ..Launch::shell("true") };
        session("a").bind(&mut launch).unwrap();
        assert_eq!(launch.session, Some(Session("a".into())));
        assert_eq!(launch.name_unique, NameUnique::InSession);
        session("a").bind(&mut launch).unwrap();
        let refused = session("b").bind(&mut launch).unwrap_err();
        assert_eq!(refused.code, ErrorCode::SessionToken);
    }
}
