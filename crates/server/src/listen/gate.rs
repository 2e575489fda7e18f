//! The checks of a request before it is routed.

use axum::http::request;
use lastbyte_wire::Error;

use super::auth::{self, Access};
use super::host::{self, Hosts};
use super::origin;
use super::pages::Pages;
use super::peer::Peer;
use super::scope::Grant;

/// What an admitted request proves of its connection.
#[derive(Debug, Clone)]
pub(super) enum Admitted {
    /// Its client may use the server, within this scope.
    Proved(Grant),
    /// It only asked for public information.
    Public,
}

/// The checks in their order: the peer, the host name, the origin, the token. On a unix socket, only a page
/// has to name a host that is ours.
pub(super) fn check(
    head: &request::Parts,
    peer: &Peer,
    hosts: &Hosts,
    access: &Access,
    pages: &Pages,
) -> Result<Admitted, Error> {
    auth::check_peer(peer)?;
    let asked_for = match peer {
        // A program may send any name: `unix`, `docker`, the path of the socket. A page can get here
        // through a forwarded port.
        Peer::Unix { .. } if !origin::is_from_page(&head.headers) => None,
        // Its host and origin were checked where it connected.
        Peer::Carried => None,
        Peer::Unix { .. } | Peer::Tcp(_) => host::check(head, hosts)?,
    };
    origin::check(head, asked_for.as_ref())?;
    auth::check_token(head, peer, access, pages)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::http::Request;
    use lastbyte_wire::ErrorCode;
    use rustix::process::geteuid;

    use super::super::{AcceptedTokens, PeerConfinement, Token};
    use super::*;

    /// What a request that fails every check from this one on is refused for.
    fn refused_for(uid: u32, host: &str, origin: &str) -> ErrorCode {
        let folder = tempfile::tempdir().unwrap();
        let token = Token::read_or_create(folder.path()).unwrap();
        let token = Arc::new(AcceptedTokens::new(token));
        let request = Request::get("/v1").header("host", host).header("origin", origin);
        let (head, ()) = request.body(()).unwrap().into_parts();
        let peer = Peer::Unix { pid: None, uid, confinement: PeerConfinement::None };
        let result =
            check(&head, &peer, &Hosts::default(), &Access::Token(token), &Pages::in_memory());
        result.unwrap_err().code
    }

    #[test]
    fn the_checks_come_in_their_order() {
        let own = geteuid().as_raw();
        let (theirs, ours) = ("http://example.com", "http://localhost");
        assert_eq!(refused_for(own + 1, "example.com", theirs), ErrorCode::ForbiddenPeer);
        assert_eq!(refused_for(own, "example.com", theirs), ErrorCode::UnknownHost);
        assert_eq!(refused_for(own, "localhost", theirs), ErrorCode::CrossSite);
        assert_eq!(refused_for(own, "localhost", ours), ErrorCode::Unauthorized);
    }
}
