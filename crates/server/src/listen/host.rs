//! The check of the `Host` header, against DNS rebinding.
//!
//! A page of another site can make a browser send requests here under a name of that site, which it
//! resolves to this machine. So unknown names are refused; IP addresses and `localhost` cannot be
//! another site's.

use std::net::{Ipv4Addr, Ipv6Addr};

use axum::http::uri::Authority;
use axum::http::{Version, header, request};
use lastbyte_wire::{Error, ErrorCode};

use crate::from_wire::invalid;

/// The names of this server, besides IP addresses and `localhost`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hosts {
    names: Vec<String>,
}

impl Hosts {
    pub fn new(names: impl IntoIterator<Item = String>) -> Self {
        Self { names: names.into_iter().map(|name| name.to_ascii_lowercase()).collect() }
    }

    fn know(&self, host: &str) -> bool {
        let bracketed = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        match bracketed {
            Some(address) => address.parse::<Ipv6Addr>().is_ok(),
            None => {
                host.parse::<Ipv4Addr>().is_ok()
                    || host.eq_ignore_ascii_case("localhost")
                    || self.names.iter().any(|name| host.eq_ignore_ascii_case(name))
            }
        }
    }
}

/// A host and a port as a client wrote them: `localhost:8080`, `[::1]`.
pub(super) fn parse(text: &[u8]) -> Option<Authority> {
    let authority = Authority::try_from(text).ok()?;
    let (text, host) = (authority.as_str(), authority.host());
    // A name and a password before the host make it look like another one.
    let plain = !text.contains('@') && !host.is_empty();
    // What follows the host is nothing or the number of a port.
    let whole = text.len() == host.len() || authority.port_u16().is_some();
    (plain && whole).then_some(authority)
}

/// The host that the request names; `None` if HTTP/1.0 leaves it out.
pub(super) fn check(head: &request::Parts, hosts: &Hosts) -> Result<Option<Authority>, Error> {
    let mut fields = head.headers.get_all(header::HOST).iter();
    let (field, second) = (fields.next(), fields.next());
    if second.is_some() {
        return Err(invalid("the request has more than one Host header"));
    }
    let in_target = head.uri.authority().map(|authority| authority.as_str().as_bytes());
    if field.is_none() && in_target.is_none() {
        return match head.version {
            Version::HTTP_09 | Version::HTTP_10 => Ok(None),
            _ => Err(invalid("the request has no Host header")),
        };
    }
    // A target with a name in it wins over the field, and both must be ours.
    let mut asked_for = None;
    for text in in_target.into_iter().chain(field.map(|field| field.as_bytes())) {
        let authority = known(text, hosts)?;
        asked_for.get_or_insert(authority);
    }
    Ok(asked_for)
}

fn known(text: &[u8], hosts: &Hosts) -> Result<Authority, Error> {
    let authority = parse(text).filter(|authority| hosts.know(authority.host()));
    authority.ok_or_else(|| {
        let name = String::from_utf8_lossy(text);
        Error::new(ErrorCode::UnknownHost, format!("unknown host {name:?}"))
            .hint("use localhost or an IP address, or start the server with --host NAME")
    })
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    fn of(request: Request<()>) -> Result<Option<String>, ErrorCode> {
        let hosts = Hosts::new(["Build.example".to_owned()]);
        let (head, ()) = request.into_parts();
        let asked_for = check(&head, &hosts).map_err(|error| error.code)?;
        Ok(asked_for.map(|authority| authority.to_string()))
    }

    fn of_field(host: &str) -> Result<Option<String>, ErrorCode> {
        of(Request::get("/").header("host", host).body(()).unwrap())
    }

    #[test]
    fn an_address_localhost_and_a_given_name_are_ours() {
        for host in [
            "localhost",
            "LocalHost:80",
            "127.0.0.1",
            "10.1.2.3:8080",
            "[::1]",
            "[fe80::1]:1",
            "build.EXAMPLE:65535",
        ] {
            assert_eq!(of_field(host), Ok(Some(host.to_owned())), "{host}");
        }
    }

    #[test]
    fn every_other_name_is_refused() {
        for host in [
            "example.com",
            "localhost.example.com",
            "localhost.",
            "127.0.0.1.nip.io",
            "build.example.",
            "a@localhost",
            "localhost:",
            "localhost:x",
            "localhost:65536",
            "::1",
            "[::1",
            "[localhost]",
            "[127.0.0.1]",
            "0x7f.1",
            "",
            "localhost/",
            "localhost, localhost",
        ] {
            assert_eq!(of_field(host), Err(ErrorCode::UnknownHost), "{host:?}");
        }
    }

    #[test]
    fn a_name_in_the_target_counts_too() {
        let request = |target: &str, host: &str| {
            of(Request::get(target).header("host", host).body(()).unwrap())
        };
        assert_eq!(request("http://localhost:1/", "localhost:2"), Ok(Some("localhost:1".into())));
        assert_eq!(request("http://example.com/", "localhost"), Err(ErrorCode::UnknownHost));
        assert_eq!(request("http://localhost/", "example.com"), Err(ErrorCode::UnknownHost));
        assert_eq!(request("http://a@localhost/", "localhost"), Err(ErrorCode::UnknownHost));
    }

    #[test]
    fn only_http_1_0_may_leave_it_out() {
        let without = |version| of(Request::get("/").version(version).body(()).unwrap());
        assert_eq!(without(Version::HTTP_10), Ok(None));
        assert_eq!(without(Version::HTTP_11), Err(ErrorCode::InvalidRequest));
    }

    #[test]
    fn two_of_them_are_one_too_many() {
        let request = Request::get("/").header("host", "localhost").header("host", "localhost");
        assert_eq!(of(request.body(()).unwrap()), Err(ErrorCode::InvalidRequest));
    }
}
