//! Which clients are let in.

use std::sync::Arc;
use std::time::Instant;

use axum::http::{HeaderMap, Method, header, request};
use lastbyte_wire::{Error, ErrorCode};
use rustix::process::geteuid;

use super::confinement::PeerConfinement;
use super::created_tokens::CreatedTokens;
use super::failed_tokens::{FailedTokens, WINDOW};
use super::gate::Admitted;
use super::pages::Pages;
use super::peer::Peer;
use super::scope::{Grant, Scope};
use super::token::Token;
use crate::doors::page;

/// What a TCP listener requires of its clients. A unix socket is for this user and root alone.
#[derive(Debug, Clone)]
pub enum Access {
    /// `Authorization: Bearer TOKEN` on everything but `GET /healthz`.
    Token(Arc<AcceptedTokens>),
    /// Nothing: every client that can connect is let in.
    Open,
    /// Nothing more: the client was checked before its connection was carried here, and has this scope.
    Granted(Scope),
}

/// The tokens that a listener accepts.
#[derive(Debug)]
pub struct AcceptedTokens {
    own: Token,
    created: Option<Arc<CreatedTokens>>,
    failed: FailedTokens,
}

impl AcceptedTokens {
    /// The server's own alone.
    pub fn new(own: Token) -> Self {
        Self { own, created: None, failed: FailedTokens::default() }
    }

    /// And those that were created.
    pub fn and(self, created: Arc<CreatedTokens>) -> Self {
        Self { created: Some(created), ..self }
    }

    /// Those that were created.
    pub fn created(&self) -> Option<&Arc<CreatedTokens>> {
        self.created.as_ref()
    }

    fn find(&self, given: &[u8]) -> Option<Grant> {
        if self.own.is(given) {
            return Some(Grant::all());
        }
        self.created.as_ref()?.find(given)
    }

    fn wrong(&self, peer: &Peer) -> Error {
        let too_many = match peer {
            Peer::Tcp(address) => self.failed.count(address.ip(), Instant::now()),
            Peer::Unix { .. } | Peer::Carried => false,
        };
        if !too_many {
            return unauthorized("wrong token");
        }
        let message = "too many requests with a wrong token came from this address";
        let seconds = WINDOW.as_secs();
        Error::new(ErrorCode::TooManyFailedTokens, message)
            .hint(format!("use a right token, which is taken at once, or wait {seconds} seconds"))
    }
}

/// The first check: what the kernel says of a unix peer.
pub(super) fn check_peer(peer: &Peer) -> Result<(), Error> {
    check_uid(peer, geteuid().as_raw())?;
    check_confinement(peer)
}

/// A sandboxed command must not use the server to get around its policy.
fn check_confinement(peer: &Peer) -> Result<(), Error> {
    match peer {
        Peer::Unix { confinement: PeerConfinement::None, .. } | Peer::Tcp(_) | Peer::Carried => {
            Ok(())
        }
        Peer::Unix { confinement: PeerConfinement::Sandboxed, .. } => Err(Error::new(
            ErrorCode::SandboxedPeer,
            format!("the client ({peer}) is in a sandbox that this server is not in"),
        )
        .hint("run the command directly: it stays in the same sandbox")),
        Peer::Unix { confinement: PeerConfinement::Unknown, .. } => Err(Error::new(
            ErrorCode::ForbiddenPeer,
            format!("cannot check whether the client ({peer}) is in a sandbox: it is gone"),
        )),
        Peer::Unix { confinement: PeerConfinement::Unchecked(errno), .. } => Err(Error::new(
            ErrorCode::TooManyConnections,
            format!("cannot check whether the client ({peer}) is in a sandbox: {errno}"),
        )
        .hint("try again in a moment; if it keeps failing, raise the server's `ulimit -n`")),
    }
}

/// Why a connection is not kept: a peer is checked once, so this one would never be let in.
pub(super) fn unchecked(peer: &Peer) -> Option<Error> {
    match peer {
        Peer::Unix { confinement: PeerConfinement::Unchecked(_), .. } => check_peer(peer).err(),
        Peer::Unix { .. } | Peer::Tcp(_) | Peer::Carried => None,
    }
}

fn check_uid(peer: &Peer, own: u32) -> Result<(), Error> {
    match *peer {
        Peer::Unix { uid, .. } if uid != own && uid != 0 => {
            let message =
                format!("this socket is for uid {own} only, and the client has uid {uid}");
            Err(Error::new(ErrorCode::ForbiddenPeer, message))
        }
        Peer::Unix { .. } | Peer::Tcp(_) | Peer::Carried => Ok(()),
    }
}

/// The last check: the token, if one is required.
pub(super) fn check_token(
    head: &request::Parts,
    peer: &Peer,
    access: &Access,
    pages: &Pages,
) -> Result<Admitted, Error> {
    if let Some(grant) = page_grant(head, peer, pages)? {
        return Ok(Admitted::Proved(grant));
    }
    let tokens = match access {
        Access::Open => return Ok(Admitted::Proved(Grant::all())),
        Access::Granted(scope) => return Ok(Admitted::Proved(Grant::within(scope.clone()))),
        Access::Token(tokens) => tokens,
    };
    let given = bearer(&head.headers);
    match given.and_then(|given| tokens.find(given)) {
        Some(grant) => Ok(Admitted::Proved(grant)),
        None if is_public(head) => Ok(Admitted::Public),
        None if given.is_some() => Err(tokens.wrong(peer)),
        None => Err(unauthorized("missing token")),
    }
}

pub(super) fn unauthorized(message: &str) -> Error {
    Error::new(ErrorCode::Unauthorized, message)
        .hint("send `Authorization: Bearer TOKEN`; the server prints the path of its token file at startup")
}

/// The grant of a page, by its token or by a ticket for a WebSocket. One that is no longer valid is not
/// replaced by what a port without tokens allows. Only ports have pages.
fn page_grant(head: &request::Parts, peer: &Peer, pages: &Pages) -> Result<Option<Grant>, Error> {
    if matches!(peer, Peer::Unix { .. } | Peer::Carried) {
        return Ok(None);
    }
    if let Some(given) = bearer(&head.headers).filter(|given| Pages::is_token(given)) {
        let over = || unauthorized("the token of this page is no longer valid");
        return pages.find(given).map(Some).ok_or_else(over);
    }
    let Some(ticket) = ticket(head) else { return Ok(None) };
    let used = || unauthorized("this ticket was used before, has expired or never existed");
    pages.redeem(ticket).map(Some).ok_or_else(used)
}

/// The ticket of a request that opens a WebSocket and has no token.
fn ticket(head: &request::Parts) -> Option<&str> {
    let path = head.uri.path().strip_prefix("/v1/processes/")?;
    if head.method != Method::GET
        || !path.ends_with("/attach")
        || head.headers.contains_key(header::AUTHORIZATION)
    {
        return None;
    }
    head.uri.query()?.split('&').find_map(|pair| pair.strip_prefix("ticket="))
}

/// Whether the server runs is no secret, a link is one itself, and the files of the page are the same
/// everywhere.
fn is_public(head: &request::Parts) -> bool {
    match head.uri.path() {
        "/healthz" => matches!(head.method, Method::GET | Method::HEAD),
        "/v1/links/trade" => head.method == Method::POST,
        path => matches!(head.method, Method::GET | Method::HEAD) && page::has(path),
    }
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
    use rustix::io::Errno;

    use super::*;

    const OURS: u32 = 1000;

    #[test]
    fn a_peer_in_a_sandbox_is_told_so_and_one_that_is_gone_is_refused_too() {
        let check = |confinement| {
            check_peer(&Peer::Unix { pid: Some(7), uid: geteuid().as_raw(), confinement })
        };
        assert_eq!(check(PeerConfinement::None), Ok(()));
        let sandboxed = check(PeerConfinement::Sandboxed).unwrap_err();
        assert_eq!(sandboxed.code, ErrorCode::SandboxedPeer);
        assert!(sandboxed.message.contains("pid 7"), "{sandboxed}");
        assert_eq!(check(PeerConfinement::Unknown).unwrap_err().code, ErrorCode::ForbiddenPeer);
        let unchecked = check(PeerConfinement::Unchecked(Errno::MFILE)).unwrap_err();
        assert_eq!(unchecked.code, ErrorCode::TooManyConnections);
        assert!(unchecked.message.contains("Too many open files"), "{unchecked}");
    }

    #[test]
    fn a_unix_socket_is_for_its_user_and_root() {
        let confinement = PeerConfinement::None;
        let peer = |uid| check_uid(&Peer::Unix { pid: Some(1), uid, confinement }, OURS);
        assert_eq!(peer(OURS), Ok(()));
        assert_eq!(peer(0), Ok(()));
        assert_eq!(peer(1001).unwrap_err().code, ErrorCode::ForbiddenPeer);
        assert_eq!(check_uid(&Peer::Tcp(([127, 0, 0, 1], 1).into()), OURS), Ok(()));
    }

    #[derive(Debug, PartialEq, Eq)]
    enum As {
        Proved,
        Public,
    }

    fn admitted(admitted: Admitted) -> As {
        match admitted {
            Admitted::Proved(_) => As::Proved,
            Admitted::Public => As::Public,
        }
    }

    fn check(method: &str, path: &str, fields: &[&str]) -> Result<As, ErrorCode> {
        let folder = tempfile::tempdir().unwrap();
        let token = Token::read_or_create(folder.path()).unwrap();
        let text = std::fs::read_to_string(Token::file_in(folder.path())).unwrap();
        let mut request = Request::builder().method(method).uri(path);
        for field in fields {
            request = request.header("authorization", field.replace("TOKEN", text.trim()));
        }
        let (head, ()) = request.body(()).unwrap().into_parts();
        let peer = Peer::Tcp(([127, 0, 0, 1], 1).into());
        assert_eq!(
            check_token(&head, &peer, &Access::Open, &Pages::in_memory()).map(admitted),
            Ok(As::Proved)
        );
        let access = Access::Token(Arc::new(AcceptedTokens::new(token)));
        check_token(&head, &peer, &access, &Pages::in_memory())
            .map(admitted)
            .map_err(|error| error.code)
    }

    #[test]
    fn the_token_comes_through() {
        for field in ["Bearer TOKEN", "bearer TOKEN", "BEARER  TOKEN "] {
            assert_eq!(check("POST", "/v1/processes", &[field]), Ok(As::Proved), "{field}");
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
    fn the_files_of_the_page_need_none_and_nothing_beside_them() {
        assert_eq!(check("GET", "/", &[]), Ok(As::Public));
        assert_eq!(check("HEAD", "/page/main.js", &[]), Ok(As::Public));
        for (method, path) in
            [("POST", "/"), ("GET", "/page/"), ("GET", "/page/../v1"), ("GET", "//")]
        {
            assert_eq!(check(method, path, &[]), Err(ErrorCode::Unauthorized), "{method} {path}");
        }
    }

    #[test]
    fn health_alone_needs_none() {
        assert_eq!(check("GET", "/healthz", &[]), Ok(As::Public));
        assert_eq!(check("HEAD", "/healthz?x", &[]), Ok(As::Public));
        assert_eq!(check("GET", "/healthz", &["Bearer TOKEN"]), Ok(As::Proved));
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
