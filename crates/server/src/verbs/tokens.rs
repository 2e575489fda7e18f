//! Creating, listing and revoking tokens. Only for clients that may do everything.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use lastbyte_wire::{
    CreateTokenAnswer, CreateTokenRequest, Error, ErrorCode, StartRequest, TokenList, TokenScope,
};
use tokio::task::spawn_blocking;

use super::refusal::broken;
use crate::App;
use crate::from_wire::invalid;
use crate::listen::CreatedTokens;

pub async fn create(app: &App, request: CreateTokenRequest) -> Result<CreateTokenAnswer, Error> {
    let CreateTokenRequest { session, read_only, expires_in_ms, note } = request;
    let scope = match (session, read_only) {
        (Some(_), Some(true)) => return Err(invalid("give `session` or `read_only`, not both")),
        (Some(name), _) => session_scope(name)?,
        (None, Some(true)) => TokenScope::ReadOnly,
        (None, Some(false) | None) => TokenScope::All,
    };
    if note.as_ref().is_some_and(|note| note.len() > CreateTokenRequest::LONGEST_NOTE) {
        let most = CreateTokenRequest::LONGEST_NOTE;
        return Err(invalid(format!("`note` is longer than {most} bytes")));
    }
    if expires_in_ms == Some(0) {
        return Err(invalid("`expires_in_ms` must be greater than 0"));
    }
    let expires = expires_in_ms.map(Duration::from_millis);
    change(app, "create", move |tokens| tokens.create(scope, expires, note)).await
}

fn session_scope(name: String) -> Result<TokenScope, Error> {
    let most = StartRequest::LONGEST_NAME;
    if name.is_empty() || name.len() > most {
        return Err(invalid(format!("`session` must have between 1 and {most} bytes")));
    }
    Ok(TokenScope::Session { name })
}

pub fn list(app: &App) -> TokenList {
    TokenList { tokens: app.tokens.as_ref().map(|tokens| tokens.list()).unwrap_or_default() }
}

/// Takes effect at once, also for open connections.
pub async fn revoke(app: &App, id: String) -> Result<(), Error> {
    let missing = Error::new(ErrorCode::TokenNotFound, format!("no token with the id {id}"))
        .hint("list the tokens with GET /v1/tokens");
    let revoked = change(app, "revoke", move |tokens| tokens.revoke(&id)).await?;
    if revoked { Ok(()) } else { Err(missing) }
}

/// Off the runtime, because it waits for the disk.
async fn change<T: Send + 'static>(
    app: &App,
    what: &str,
    change: impl FnOnce(&CreatedTokens) -> io::Result<T> + Send + 'static,
) -> Result<T, Error> {
    let Some(tokens) = app.tokens.as_ref().map(Arc::clone) else {
        return Err(Error::new(ErrorCode::Failed, "this server has no store for tokens"));
    };
    let changed = spawn_blocking(move || change(&tokens)).await;
    let changed = changed.map_err(|_| broken("changing the tokens"))?;
    changed
        .map_err(|error| Error::new(ErrorCode::Failed, format!("cannot {what} the token: {error}")))
}
