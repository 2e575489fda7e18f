//! Whose a request is: its scope, its session, and what a shim has said of itself.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use lastbyte_engine::Session;
use lastbyte_wire::{Error, ErrorCode, StartRequest, mcp};
use percent_encoding::percent_decode_str;
use serde_json::Value;
use uuid::Uuid;

use crate::App;
use crate::from_wire::invalid;
use crate::listen::Scope;

/// The client of one request.
#[derive(Debug, Clone)]
pub(super) struct Client {
    /// As it may see it: bound to its session.
    pub(super) app: App,
    /// What it may do.
    pub(super) scope: Scope,
    /// A name for this call that is the same when the call is repeated.
    pub(super) call: Option<String>,
}

/// The session of requests that name none.
const SHARED: &str = "mcp";
/// The header field of the handshake's sessions.
const MCP_SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// What our values of it begin with.
const MINTED: &str = "mcp-";

impl Client {
    /// A token of a session wins over every header.
    pub(super) fn new(app: &App, headers: &HeaderMap) -> Result<Self, Error> {
        let scope = &app.scope;
        let within = match (scope, session(headers)?) {
            (Scope::Session(_) | Scope::Process { .. }, _)
            | (Scope::ReadOnly, None | Some(Named::Minted(_))) => scope.clone(),
            (Scope::All, None) => Scope::Session(Session(SHARED.into())),
            (Scope::ReadOnly, Some(Named::Chosen(name)))
            | (Scope::All, Some(Named::Chosen(name) | Named::Minted(name))) => {
                Scope::Session(Session(name))
            }
        };
        let call = headers.get(mcp::CALL).and_then(|value| value.to_str().ok());
        Ok(Self { app: app.within(within), scope: scope.clone(), call: call.map(str::to_owned) })
    }
}

/// A session that the client has chosen, or one that was made for it.
enum Named {
    Chosen(String),
    Minted(String),
}

fn session(headers: &HeaderMap) -> Result<Option<Named>, Error> {
    if let Some(name) = headers.get(mcp::SESSION) {
        let name = name.to_str().ok().map(|name| percent_decode_str(name).decode_utf8());
        let Some(Ok(name)) = name else {
            return Err(invalid(format!("invalid `{}`: it is not UTF-8", mcp::SESSION)));
        };
        if name.is_empty() || name.len() > StartRequest::LONGEST_NAME {
            let most = StartRequest::LONGEST_NAME;
            return Err(invalid(format!("`{}` must have 1 to {most} bytes", mcp::SESSION)));
        }
        return Ok(Some(Named::Chosen(name.into_owned())));
    }
    let Some(minted) = headers.get(MCP_SESSION) else { return Ok(None) };
    let id = minted.to_str().ok().filter(|id| is_minted(id));
    // The status that makes a client begin again.
    let unknown = || Error::new(ErrorCode::RouteNotFound, "unknown Mcp-Session-Id");
    id.map(|id| Some(Named::Minted(id.to_owned()))).ok_or_else(unknown)
}

fn is_minted(id: &str) -> bool {
    id.strip_prefix(MINTED).is_some_and(|uuid| Uuid::parse_str(uuid).is_ok())
}

/// A session for the client of a handshake, unless it has one.
pub(super) fn minted_session(headers: &HeaderMap) -> Option<(HeaderName, HeaderValue)> {
    if headers.contains_key(mcp::SESSION) || headers.contains_key(MCP_SESSION) {
        return None;
    }
    let id = format!("{MINTED}{}", Uuid::new_v4());
    HeaderValue::try_from(id).ok().map(|id| (MCP_SESSION, id))
}

/// Fills in what HTTP requires beside the message, for a shim that only passes messages on.
pub(super) fn complete_headers(headers: &mut HeaderMap, message: &Value) {
    if !headers.contains_key(mcp::STDIO) {
        return;
    }
    let accepted = HeaderValue::from_static("application/json, text/event-stream");
    headers.insert(header::ACCEPT, accepted);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let params = &message["params"];
    let version = &params["_meta"]["io.modelcontextprotocol/protocolVersion"];
    if !version.is_string() {
        return;
    }
    let fields = [
        ("mcp-protocol-version", version),
        ("mcp-method", &message["method"]),
        ("mcp-name", if params["name"].is_string() { &params["name"] } else { &params["uri"] }),
    ];
    for (field, value) in fields {
        let value = value.as_str().and_then(|value| HeaderValue::from_str(value).ok());
        if let Some(value) = value {
            headers.insert(HeaderName::from_static(field), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use lastbyte_engine::{Engine, Settings};

    use super::*;
    use crate::Limits;

    fn session_of(
        scope: &Scope,
        fields: &[(&'static str, &str)],
    ) -> Result<Option<String>, ErrorCode> {
        let state = tempfile::tempdir().unwrap();
        let app = App::new(Engine::new(Settings::new(state.path())).unwrap(), Limits::default());
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.insert(*name, HeaderValue::from_str(value).unwrap());
        }
        let client =
            Client::new(&app.within(scope.clone()), &headers).map_err(|error| error.code)?;
        Ok(client.app.session().map(|session| session.0.clone()))
    }

    const MINTED_ID: &str = "mcp-0a1b2c3d-0000-4000-8000-00000000000a";

    #[tokio::test]
    async fn a_session_comes_from_the_token_then_our_header_then_the_protocols() {
        let ours = ("lastbyte-session", "a%20b");
        let theirs = ("mcp-session-id", MINTED_ID);
        let bound = Scope::Session(Session("t".into()));
        let some = |name: &str| Ok(Some(name.to_owned()));
        assert_eq!(session_of(&Scope::All, &[]), some("mcp"));
        assert_eq!(session_of(&Scope::All, &[theirs]), some(MINTED_ID));
        assert_eq!(session_of(&Scope::All, &[ours, theirs]), some("a b"));
        assert_eq!(session_of(&bound, &[ours, theirs]), some("t"));
    }

    #[tokio::test]
    async fn a_read_only_client_sees_everything_unless_it_chooses_a_session() {
        assert_eq!(session_of(&Scope::ReadOnly, &[]), Ok(None));
        assert_eq!(session_of(&Scope::ReadOnly, &[("mcp-session-id", MINTED_ID)]), Ok(None));
        let chosen = session_of(&Scope::ReadOnly, &[("lastbyte-session", "a")]);
        assert_eq!(chosen, Ok(Some("a".into())));
    }

    #[tokio::test]
    async fn a_session_id_of_the_protocol_that_is_not_ours_is_unknown() {
        for id in ["a", "mcp-", "mcp-x"] {
            let refused = session_of(&Scope::All, &[("mcp-session-id", id)]);
            assert_eq!(refused, Err(ErrorCode::RouteNotFound), "{id}");
        }
        let refused = session_of(&Scope::All, &[("lastbyte-session", "%ff")]);
        assert_eq!(refused, Err(ErrorCode::InvalidRequest));
    }
}
