//! A request of a chat as a launch, and the name that makes it repeatable.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;

use lastbyte_engine::{EnvEdit, Key, Launch, Spec, Touches};
use lastbyte_wire::StartRequest;

use super::chat::Chat;
use super::go_quote::quote;
use super::request::StartBody;

/// The label of processes started with `background`, which has no other effect.
const BACKGROUND: &str = "coder.background";

/// A name or value in the environment has a NUL in it, which no environment can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the environment variable {name:?} contains a NUL byte")]
pub(super) struct NulInEnvironment {
    name: String,
}

pub(super) fn launch(request: StartBody, chat: &Chat) -> Result<Launch, NulInEnvironment> {
    let key = RetryKey::new(&request).map(|key| key.in_engine(chat));
    let StartBody { command, workdir, env, background, .. } = request;
    let forced = chat.own.iter().map(|own| ("CODER_CHAT_ID".into(), own.into()));
    let background = background.then(|| (BACKGROUND.to_owned(), "true".to_owned()));
    let workdir = Some(workdir).filter(|workdir| !workdir.is_empty());
    Ok(Launch {
        env: edits(env)?,
        forced_env: forced.collect(),
        session: chat.session(),
        key,
        labels: background.into_iter().collect(),
        // Only what the request names: the default directory is no workspace.
        touches: chat.own.as_ref().map(|_| Touches {
            sessions: chat.line(),
            paths: workdir.iter().map(Into::into).collect(),
        }),
        cwd: workdir.map(Into::into),
        ..Launch::shell(command)
    })
}

pub(super) fn is_background(spec: &Spec) -> bool {
    spec.labels.get(BACKGROUND).is_some_and(|value| value == "true")
}

/// A name that contains `=` ends there; the rest belongs to the value. A variable without a name is
/// left out, since no program could see it.
fn edits(env: BTreeMap<String, String>) -> Result<Vec<EnvEdit>, NulInEnvironment> {
    let mut edits = Vec::with_capacity(env.len());
    for (name, value) in env {
        if name.contains('\0') || value.contains('\0') {
            return Err(NulInEnvironment { name });
        }
        let (name, value) = match name.split_once('=') {
            Some((name, more)) => (OsString::from(name), format!("{more}={value}")),
            None => (name.into(), value),
        };
        if !name.is_empty() {
            edits.push(EnvEdit::Set(name, value.into()));
        }
    }
    Ok(edits)
}

/// A start with the same one and the same request is the same process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RetryKey {
    /// `client_token`: one of the server's keys, whatever the chat.
    ClientToken(String),
    /// `idempotency_key`: a name within its chat.
    IdempotencyKey(String),
}

impl RetryKey {
    /// With both members `idempotency_key` counts: the agent does not know the other.
    pub(super) fn new(request: &StartBody) -> Option<Self> {
        match (request.idempotency_key.as_str(), request.client_token.as_str()) {
            ("", "") => None,
            ("", token) => Some(Self::ClientToken(token.into())),
            (key, _) => Some(Self::IdempotencyKey(key.into())),
        }
    }

    /// The key as the engine and the native API have it. An id of a chat has no colon, so no two
    /// chats share one.
    pub(super) fn in_engine(&self, chat: &Chat) -> Key {
        match self {
            Self::ClientToken(token) => Key(token.clone()),
            Self::IdempotencyKey(key) => {
                Key(format!("coder:{}:{key}", chat.own.as_deref().unwrap_or_default()))
            }
        }
    }

    /// Whether it is longer than the native API allows: it is kept with every event.
    pub(super) fn is_too_long(&self) -> bool {
        self.text().len() > StartRequest::LONGEST_NAME
    }

    /// What it is called in messages.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::ClientToken(_) => "Process token",
            Self::IdempotencyKey(_) => "Idempotency key",
        }
    }

    fn text(&self) -> &str {
        let (Self::ClientToken(text) | Self::IdempotencyKey(text)) = self;
        text
    }
}

impl fmt::Display for RetryKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.kind(), quote(self.text().as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use lastbyte_engine::Session;

    use super::*;

    fn check(env: &[(&str, &str)], want: &[(&str, &str)]) {
        let env = env.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let set = |(name, value): &(&str, &str)| EnvEdit::Set(name.into(), value.into());
        assert_eq!(edits(env).unwrap(), want.iter().map(set).collect::<Vec<_>>());
    }

    #[test]
    fn a_name_ends_at_its_first_equals_sign() {
        check(
            &[("A=B", "c"), ("D=", "e"), ("F", "g=h")],
            &[("A", "B=c"), ("D", "=e"), ("F", "g=h")],
        );
    }

    #[test]
    fn a_variable_without_a_name_is_none() {
        check(&[("", "v"), ("=A", "b"), ("X", "")], &[("X", "")]);
    }

    #[test]
    fn a_nul_is_refused_even_where_nobody_would_see_it() {
        for (name, value) in [("A", "b\0"), ("A\0", "b"), ("", "\0")] {
            assert!(edits([(name.into(), value.into())].into()).is_err());
        }
    }

    #[test]
    fn what_is_touched_is_what_the_request_names() {
        let own = "0a1b2c3d-0000-4000-8000-00000000000a";
        let chat = Chat { own: Some(own.into()), ancestors: vec!["parent".into()] };
        let request = StartBody { command: "c".into(), ..StartBody::default() };
        let touches =
            |request: &StartBody, chat: &Chat| launch(request.clone(), chat).unwrap().touches;
        let sessions = vec![Session(own.to_owned()), Session("parent".to_owned())];
        let want = Touches { sessions: sessions.clone(), paths: vec![] };
        assert_eq!(touches(&request, &chat), Some(want));
        let request = StartBody { workdir: "/w//x".into(), ..request };
        let want = Touches { sessions, paths: vec!["/w//x".into()] };
        assert_eq!(touches(&request, &chat), Some(want));
        let orphan = Chat { own: None, ..chat };
        assert_eq!(touches(&request, &orphan), None);
    }
}
