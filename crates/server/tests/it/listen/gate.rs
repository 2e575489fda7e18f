use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use lastbyte_server::Limits;
use lastbyte_server::listen::{AcceptedTokens, Access, Token};
use lastbyte_testkit::not_run;
use rustix::process::{Uid, geteuid};

use super::fixture::{Answer, Fixture, field};

fn ask(fixture: &Fixture, request: &str) -> Answer {
    let mut client = fixture.tcp();
    client.send(request);
    client.answer()
}

#[test]
fn a_foreign_host_is_refused_before_any_route() {
    let fixture = Fixture::new();
    for path in ["/hello", "/healthz", "/nothing"] {
        let answer = ask(&fixture, &format!("GET {path} HTTP/1.1\r\nHost: example.com\r\n\r\n"));
        assert_eq!(answer.refusal(), (421, "unknown_host".into()), "{path}");
    }
    let absolute = "GET http://example.com/hello HTTP/1.1\r\nHost: localhost\r\n\r\n";
    assert_eq!(ask(&fixture, absolute).refusal(), (421, "unknown_host".into()));
    let none = ask(&fixture, "GET /hello HTTP/1.1\r\n\r\n");
    assert_eq!(none.refusal(), (400, "invalid_request".into()));
    let two = ask(&fixture, "GET /hello HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n");
    assert_eq!(two.refusal(), (400, "invalid_request".into()));
}

#[test]
fn a_program_on_the_unix_socket_may_name_any_host() {
    let fixture = Fixture::new();
    let ask = |fields: &str| {
        let mut client = fixture.unix();
        client.send(&format!("GET /hello HTTP/1.1\r\n{fields}\r\n"));
        client.answer()
    };
    for fields in [
        "Host: example.com\r\n",
        "Host: unix\r\n",
        "Host: %2Frun%2Flastbyte%2Fsocket\r\n",
        "Host: /run/lastbyte/socket:0\r\n",
        "Host:\r\n",
        "",
    ] {
        assert_eq!(ask(fields).status, 200, "{fields:?}");
    }
    // Through a forwarded port, under a name that leads there.
    let page = ask("Host: example.com\r\nOrigin: http://example.com\r\n");
    assert_eq!(page.refusal(), (421, "unknown_host".into()));
}

#[test]
fn our_own_names_are_accepted() {
    let fixture = Fixture::new();
    for host in ["localhost", "127.0.0.1:1", "[::1]", "BUILD.example"] {
        let answer = ask(&fixture, &format!("GET /hello HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        assert_eq!(answer.status, 200, "{host}");
    }
    let absolute = "GET http://localhost/hello HTTP/1.1\r\nHost: localhost\r\n\r\n";
    assert_eq!(ask(&fixture, absolute).status, 200);
    assert_eq!(ask(&fixture, "GET /hello HTTP/1.0\r\n\r\n").status, 200);
}

#[test]
fn a_page_of_another_site_is_refused() {
    let fixture = Fixture::new();
    for fields in ["Origin: http://example.com", "Origin: null", "Sec-Fetch-Site: cross-site"] {
        for path in ["/hello", "/healthz"] {
            let answer = fixture.tcp().get(path, &[fields]);
            assert_eq!(answer.refusal(), (403, "cross_site".into()), "{fields} {path}");
        }
    }
    let ours = ["Origin: http://localhost", "Sec-Fetch-Site: same-origin"];
    assert_eq!(fixture.tcp().get("/hello", &ours).status, 200);
}

#[test]
fn tcp_needs_the_token_and_the_unix_socket_does_not() {
    let state = tempfile::tempdir().unwrap();
    let access =
        Access::Token(Arc::new(AcceptedTokens::new(Token::read_or_create(state.path()).unwrap())));
    let token = fs::read_to_string(Token::file_in(state.path())).unwrap();
    let fixture = Fixture::with(Limits::default(), access);
    for fields in [vec![], vec!["Authorization: Bearer wrong"]] {
        let answer = fixture.tcp().get("/hello", &fields);
        assert_eq!(answer.refusal(), (401, "unauthorized".into()));
        assert_eq!(field(&answer.head, "www-authenticate"), Some("Bearer"));
    }
    let right = format!("Authorization: Bearer {}", token.trim());
    assert_eq!(fixture.tcp().get("/hello", &[&right]).status, 200);
    assert_eq!(fixture.tcp().get("/healthz", &[]).status, 200);
    assert_eq!(fixture.unix().get("/hello", &[]).status, 200);
}

#[test]
fn a_route_knows_its_peer() {
    let fixture = Fixture::new();
    let (pid, uid) = (std::process::id(), geteuid().as_raw());
    assert_eq!(fixture.unix().get("/peer", &[]).body, format!("pid {pid} of uid {uid}"));
    let client = fixture.tcp();
    let own = client.0.get_ref().local_addr().unwrap();
    let mut client = client;
    assert_eq!(client.get("/peer", &[]).body, own.to_string());
}

/// Only root can act as another user; other users check only the socket's mode.
#[test]
fn another_user_is_refused_even_if_the_socket_mode_allows_it() {
    let fixture = Fixture::new();
    if !geteuid().is_root() {
        let mode = fs::metadata(fixture.socket()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        return not_run("a socket that lets others in: only root can be another user");
    }
    fs::set_permissions(fixture.folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    fs::set_permissions(fixture.socket(), PermissionsExt::from_mode(0o666)).unwrap();
    let as_nobody = || {
        // Only for this thread.
        rustix::thread::set_thread_uid(Uid::from_raw(65534)).unwrap();
        fixture.unix().get("/hello", &[])
    };
    let answer = std::thread::scope(|scope| scope.spawn(as_nobody).join().unwrap());
    assert_eq!(answer.refusal(), (403, "forbidden_peer".into()));
    assert_eq!(fixture.unix().get("/hello", &[]).status, 200);
}
