//! What an admitted request may do, and for how long.

use std::time::{Duration, SystemTime};

use lastbyte_engine::{Key, Launch, NameUnique, Session};
use lastbyte_wire::{Error, ErrorCode, TokenScope};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::created_tokens::CreatedToken;
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
}

/// What a request needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// It only reads, and what it reads of processes is bound to its scope.
    Read,
    /// It starts, changes or removes processes.
    Change,
    /// It reads what is of the whole server.
    ReadServer,
    /// It changes the server itself, or who may use it.
    Administer,
}

/// The scope of a request, for as long as its token is valid.
#[derive(Debug, Clone)]
pub struct Grant {
    pub scope: Scope,
    /// `None` if it cannot be revoked.
    pub life: Option<TokenLife>,
}

/// How long a created token is valid.
#[derive(Debug, Clone)]
pub struct TokenLife {
    pub(super) id: String,
    pub(super) expires: Option<SystemTime>,
    pub(super) tokens: watch::Receiver<Vec<CreatedToken>>,
}

impl Scope {
    /// The session that everything is bound to; `None` for all of them.
    pub fn within(&self) -> Option<&Session> {
        match self {
            Self::All | Self::ReadOnly => None,
            Self::Session(session) => Some(session),
        }
    }

    /// Refuses what the scope does not allow.
    pub fn check(&self, needs: Needs) -> Result<(), Error> {
        match (self, needs) {
            (Self::All, _)
            | (Self::ReadOnly, Needs::Read | Needs::ReadServer)
            | (Self::Session(_), Needs::Read | Needs::Change) => Ok(()),
            (Self::ReadOnly, Needs::Change | Needs::Administer) => {
                Err(Error::new(ErrorCode::ReadOnlyToken, "the token is read-only"))
            }
            (Self::Session(session), Needs::ReadServer | Needs::Administer) => {
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
        Self { scope: Scope::All, life: None }
    }

    /// Waits until the token is revoked or has expired.
    pub async fn until_over(self) {
        match self.life {
            Some(life) => life.until_over().await,
            None => std::future::pending().await,
        }
    }
}

impl TokenLife {
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
