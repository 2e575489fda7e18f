//! Who may ask at all.

use std::sync::Arc;

use axum::http::{HeaderMap, Method, header, request};
use lastbyte_wire::{Error, ErrorCode};
use rustix::process::geteuid;

use super::confinement::Confinement;
use super::peer::Peer;
use super::token::Token;

/// What a TCP listener asks of its clients. A unix socket is for this user and root alone.
#[derive(Debug, Clone)]
pub enum Access {
    /// `Authorization: Bearer TOKEN` on everything but `GET /healthz`.
    Token(Arc<Token>),
    /// Nothing: whoever can connect may ask.
    Open,
}

/// The first check: the kernel's word on a unix peer.
pub(super) fn check_peer(peer: &Peer) -> Result<(), Error> {
    check_uid(peer, geteuid().as_raw())?;
    check_confinement(peer)
}

/// A sandboxed command gets nothing from us that its policy keeps from it.
fn check_confinement(peer: &Peer) -> Result<(), Error> {
    match peer {
        Peer::Unix { confinement: Confinement::None, .. } | Peer::Tcp(_) => Ok(()),
        Peer::Unix { confinement: Confinement::Sandboxed, .. } => Err(Error::new(
            ErrorCode::SandboxedPeer,
            format!("the peer, {peer}, is in a sandbox, and this server is not in it"),
        )
        .hint("run the command itself: what it runs is in the same sandbox")),
        Peer::Unix { confinement: Confinement::Unknown, .. } => Err(Error::new(
            ErrorCode::ForbiddenPeer,
            format!("who connected, {peer}, is gone, and may have been in a sandbox"),
        )),
    }
}

fn check_uid(peer: &Peer, own: u32) -> Result<(), Error> {
    match *peer {
        Peer::Unix { uid, .. } if uid != own && uid != 0 => {
            let message = format!("this socket is for user {own}, and the peer is user {uid}");
            Err(Error::new(ErrorCode::ForbiddenPeer, message))
        }
        Peer::Unix { .. } | Peer::Tcp(_) => Ok(()),
    }
}

/// The last check: the token, where one is asked for.
pub(super) fn check_token(head: &request::Parts, access: &Access) -> Result<(), Error> {
    match access {
        Access::Open => Ok(()),
        Access::Token(_) if is_health(head) => Ok(()),
        Access::Token(token) => match bearer(&head.headers) {
            Some(given) if token.is(given) => Ok(()),
            Some(_) => Err(unauthorized("the token is wrong")),
            None => Err(unauthorized("the request has no token")),
        },
    }
}

fn unauthorized(message: &str) -> Error {
    Error::new(ErrorCode::Unauthorized, message)
        .hint("send `Authorization: Bearer TOKEN`; the server says at its start where the token is")
}

/// Whether the server is there is no secret.
fn is_health(head: &request::Parts) -> bool {
    matches!(head.method, Method::GET | Method::HEAD) && head.uri.path() == "/healthz"
}

/// The one token that the request has.
fn bearer(fields: &HeaderMap) -> Option<&[u8]> {
    let mut all = fields.get_all(header::AUTHORIZATION).iter();
    let (field, second) = (all.next()?, all.next());
    let (scheme, rest) = field.as_bytes().split_at_checked(7)?;
    let is_bearer = second.is_none() && scheme.eq_ignore_ascii_case(b"bearer ");
    is_bearer.then(|| rest.trim_ascii())
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    const OURS: u32 = 1000;

    #[test]
    fn a_peer_in_a_sandbox_is_told_so_and_one_that_is_gone_is_refused_too() {
        let check = |confinement| {
            check_peer(&Peer::Unix { pid: Some(7), uid: geteuid().as_raw(), confinement })
        };
        assert_eq!(check(Confinement::None), Ok(()));
        let sandboxed = check(Confinement::Sandboxed).unwrap_err();
        assert_eq!(sandboxed.code, ErrorCode::SandboxedPeer);
        assert!(sandboxed.message.contains("pid 7"), "{sandboxed}");
        assert_eq!(check(Confinement::Unknown).unwrap_err().code, ErrorCode::ForbiddenPeer);
    }

    #[test]
    fn a_unix_socket_is_for_its_user_and_root() {
        let confinement = Confinement::None;
        let peer = |uid| check_uid(&Peer::Unix { pid: Some(1), uid, confinement }, OURS);
        assert_eq!(peer(OURS), Ok(()));
        assert_eq!(peer(0), Ok(()));
        assert_eq!(peer(1001).unwrap_err().code, ErrorCode::ForbiddenPeer);
        assert_eq!(check_uid(&Peer::Tcp(([127, 0, 0, 1], 1).into()), OURS), Ok(()));
    }

    fn check(method: &str, path: &str, fields: &[&str]) -> Result<(), ErrorCode> {
        let folder = tempfile::tempdir().unwrap();
        let token = Token::read_or_create(folder.path()).unwrap();
        let text = std::fs::read_to_string(Token::file_in(folder.path())).unwrap();
        let mut request = Request::builder().method(method).uri(path);
        for field in fields {
            request = request.header("authorization", field.replace("TOKEN", text.trim()));
        }
        let (head, ()) = request.body(()).unwrap().into_parts();
        assert_eq!(check_token(&head, &Access::Open), Ok(()));
        check_token(&head, &Access::Token(Arc::new(token))).map_err(|error| error.code)
    }

    #[test]
    fn the_token_comes_through() {
        for field in ["Bearer TOKEN", "bearer TOKEN", "BEARER  TOKEN "] {
            assert_eq!(check("POST", "/v1/processes", &[field]), Ok(()), "{field}");
        }
    }

    #[test]
    fn no_token_a_wrong_one_and_two_do_not() {
        let cases: &[&[&str]] = &[
            &[],
            &["Bearer"],
            &["Bearer "],
            &["Bearer TOKENx"],
            &["TOKEN"],
            &["Basic TOKEN"],
            &["Bearer TOKEN", "Bearer TOKEN"],
        ];
        for fields in cases {
            let refused = Err(ErrorCode::Unauthorized);
            assert_eq!(check("GET", "/v1/processes", fields), refused, "{fields:?}");
        }
    }

    #[test]
    fn health_alone_needs_none() {
        assert_eq!(check("GET", "/healthz", &[]), Ok(()));
        assert_eq!(check("HEAD", "/healthz?x", &[]), Ok(()));
        for (method, path) in [
            ("POST", "/healthz"),
            ("GET", "/healthz/"),
            ("GET", "//healthz"),
            ("GET", "/%68ealthz"),
        ] {
            assert_eq!(check(method, path, &[]), Err(ErrorCode::Unauthorized), "{method} {path}");
        }
    }
}
