//! The check of the page on whose behalf a browser sends a request.

use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Method, header};
use lastbyte_wire::{Error, ErrorCode};

use super::host;
use crate::doors::page;

const SEC_FETCH_SITE: &str = "sec-fetch-site";

/// Whether a browser is known to send the request on behalf of a page.
///
/// Over plain HTTP browsers send neither field with a GET to the page's own origin. On a unix socket any
/// host name is accepted without them, on purpose. So if a TCP port is forwarded to the socket, a page
/// can read from it by DNS rebinding; docs/remote.md warns of that.
pub(super) fn is_from_page(fields: &HeaderMap) -> bool {
    fields.contains_key(header::ORIGIN) || fields.contains_key(SEC_FETCH_SITE)
}

/// Refuses requests of pages of other sites. Programs send no origin and are admitted.
pub(super) fn check(head: &Parts, asked_for: Option<&Authority>) -> Result<(), Error> {
    let fields = &head.headers;
    for origin in fields.get_all(header::ORIGIN) {
        if !asked_for.is_some_and(|host| is_same(origin.as_bytes(), host)) {
            let origin = String::from_utf8_lossy(origin.as_bytes());
            return Err(cross_site(format!("request from a page of another origin: {origin:?}")));
        }
    }
    if opens_the_page(head) {
        return Ok(());
    }
    for site in fields.get_all(SEC_FETCH_SITE) {
        if !matches!(site.as_bytes(), b"same-origin" | b"none") {
            return Err(cross_site("request from a page of another site".into()));
        }
    }
    Ok(())
}

/// Whether a person follows a link to the page, for example in a mail: the browser shows it in a tab of its
/// own, and the other site sees nothing of it.
fn opens_the_page(head: &Parts) -> bool {
    let says = |name: &str, value: &str| {
        let mut all = head.headers.get_all(name).iter();
        all.next().is_some_and(|first| first == value) && all.next().is_none()
    };
    matches!(head.method, Method::GET | Method::HEAD)
        && page::is_document(head.uri.path())
        && says("sec-fetch-mode", "navigate")
        && says("sec-fetch-dest", "document")
}

fn cross_site(message: String) -> Error {
    Error::new(ErrorCode::CrossSite, message).hint("only pages of this server may send it requests")
}

/// Whether the origin has the host and port of the request. A missing port is the default one of the
/// origin's scheme on both sides, because a proxy that adds TLS keeps the name.
fn is_same(origin: &[u8], host: &Authority) -> bool {
    let (rest, usual) = match (origin.strip_prefix(b"http://"), origin.strip_prefix(b"https://")) {
        (Some(rest), _) => (rest, 80),
        (None, Some(rest)) => (rest, 443),
        (None, None) => return false,
    };
    host::parse(rest).is_some_and(|origin| {
        origin.host().eq_ignore_ascii_case(host.host())
            && origin.port_u16().unwrap_or(usual) == host.port_u16().unwrap_or(usual)
    })
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    fn comes_through(fields: &[(&'static str, &str)], host: &str) -> bool {
        asks(("GET", "/v1/processes"), fields, host)
    }

    fn asks(request: (&str, &str), fields: &[(&'static str, &str)], host: &str) -> bool {
        let mut head = Request::builder().method(request.0).uri(request.1);
        for (name, value) in fields {
            head = head.header(*name, *value);
        }
        let (head, ()) = head.body(()).unwrap().into_parts();
        let result = check(&head, host::parse(host.as_bytes()).as_ref());
        assert!(result.as_ref().err().is_none_or(|error| error.code == ErrorCode::CrossSite));
        result.is_ok()
    }

    #[test]
    fn a_link_in_the_page_of_another_site_opens_ours_in_a_tab_and_nothing_else() {
        let other = ("sec-fetch-site", "cross-site");
        let (navigates, tab) = (("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document"));
        let frame = ("sec-fetch-dest", "iframe");
        for site in ["cross-site", "same-site"] {
            let fields = [("sec-fetch-site", site), navigates, tab];
            assert!(asks(("GET", "/"), &fields, "localhost"), "{site}");
        }
        for (request, fields) in [
            (("GET", "/"), &[other, navigates, frame][..]),
            (("GET", "/"), &[other, navigates]),
            (("GET", "/"), &[other, tab]),
            (("GET", "/"), &[other, ("sec-fetch-mode", "no-cors"), tab]),
            (("GET", "/"), &[other, navigates, tab, frame]),
            (("GET", "/"), &[other, navigates, tab, ("origin", "http://example.com")]),
            (("POST", "/"), &[other, navigates, tab]),
            (("GET", "/page/main.js"), &[other, navigates, tab]),
            (("GET", "/v1/processes"), &[other, navigates, tab]),
            (("GET", "/healthz"), &[other, navigates, tab]),
        ] {
            assert!(!asks(request, fields, "localhost"), "{request:?} {fields:?}");
        }
    }

    #[test]
    fn a_program_that_names_no_page_comes_through() {
        assert!(comes_through(&[], "localhost"));
    }

    #[test]
    fn our_own_page_comes_through() {
        for (origin, host) in [
            ("http://localhost:8080", "localhost:8080"),
            ("http://LOCALHOST", "localhost"),
            ("http://localhost", "localhost:80"),
            ("http://[::1]:1", "[::1]:1"),
            ("https://build.example", "build.example"),
            ("https://build.example", "build.example:443"),
        ] {
            assert!(comes_through(&[("origin", origin)], host), "{origin} asks {host}");
        }
        assert!(comes_through(&[("sec-fetch-site", "same-origin")], "localhost"));
        assert!(comes_through(&[("sec-fetch-site", "none")], "localhost"));
    }

    #[test]
    fn the_page_of_another_site_is_refused() {
        for (origin, host) in [
            ("null", "localhost"),
            ("", "localhost"),
            ("http://example.com", "localhost"),
            ("http://localhost:1", "localhost:2"),
            ("http://localhost:1", "localhost"),
            ("https://localhost", "localhost:80"),
            ("http://127.0.0.1", "localhost"),
            ("http://a@localhost", "localhost"),
            ("http://localhost/", "localhost"),
            ("file://localhost", "localhost"),
            ("localhost", "localhost"),
        ] {
            assert!(!comes_through(&[("origin", origin)], host), "{origin:?} asks {host}");
        }
        for site in ["cross-site", "same-site", "", "None"] {
            assert!(!comes_through(&[("sec-fetch-site", site)], "localhost"), "{site:?}");
        }
    }

    #[test]
    fn one_of_ours_does_not_excuse_one_of_others() {
        let ours = ("origin", "http://localhost");
        assert!(!comes_through(&[ours, ("origin", "http://example.com")], "localhost"));
        assert!(!comes_through(&[ours, ("sec-fetch-site", "cross-site")], "localhost"));
    }

    #[test]
    fn a_page_that_asks_for_no_host_is_not_ours() {
        let request = Request::get("/v1").header("origin", "http://localhost");
        let (head, ()) = request.body(()).unwrap().into_parts();
        assert!(check(&head, None).is_err());
    }
}
