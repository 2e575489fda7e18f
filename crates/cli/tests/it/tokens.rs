//! `lastbyte token`: tokens of every scope, as clients on a port use them.

use std::fs;
use std::io::Read;
use std::time::{Duration, Instant};

use lastbyte_testkit::eventually;
use serde_json::Value;

use crate::daemon::Daemon;
use crate::harness::{Finished, Fixture, expect, finish, start};

/// A server on a port.
struct Server {
    daemon: Daemon,
    address: String,
}

/// A client in a home of its own, without the server's socket, that has only this token.
struct Client<'a> {
    fixture: Fixture,
    server: &'a Server,
}

impl Server {
    fn start() -> Self {
        let (daemon, address) = Daemon::on_a_port();
        Self { daemon, address }
    }

    /// Creates a token with these options.
    fn create(&self, options: &[&str]) -> String {
        let printed = self.daemon.result(&[&["token", "create"], options].concat());
        let token = printed.strip_suffix('\n').unwrap().to_owned();
        assert!(token.starts_with("lb_") && !token.contains(char::is_whitespace), "{token:?}");
        token
    }

    fn client(&self, token: &str) -> Client<'_> {
        let fixture = Fixture::new();
        fs::write(fixture.home.path().join("token"), token).unwrap();
        Client { fixture, server: self }
    }
}

impl Client<'_> {
    fn lastbyte(&self, arguments: &[&str]) -> std::process::Command {
        let end = arguments.iter().position(|word| *word == "--").unwrap_or(arguments.len());
        let mut command = self.fixture.lastbyte(&arguments[..end]);
        command.args(["--server", &self.server.address, "--token-file"]);
        command.arg(self.fixture.home.path().join("token")).args(&arguments[end..]);
        command
    }

    fn finish(&self, arguments: &[&str]) -> Finished {
        finish(self.lastbyte(arguments))
    }

    #[track_caller]
    fn result(&self, arguments: &[&str]) -> String {
        let Finished { code, stdout, stderr } = self.finish(arguments);
        assert_eq!((code, stderr.as_str()), (Some(0), ""), "{arguments:?}");
        stdout.trim_end().to_owned()
    }

    /// The processes that it sees.
    fn ids(&self) -> Vec<String> {
        let id = |line: &str| -> Value { serde_json::from_str(line).unwrap() };
        let ids = self.result(&["ps", "--json"]);
        ids.lines().map(|line| id(line)["id"].as_str().unwrap().to_owned()).collect()
    }

    #[track_caller]
    fn refused(&self, arguments: &[&str], why: &str) {
        let Finished { code, stderr, .. } = self.finish(arguments);
        assert_ne!(code, Some(0), "{arguments:?}");
        assert!(stderr.contains(why), "{arguments:?}: {stderr}");
    }
}

#[test]
fn a_token_is_shown_once() {
    let server = Server::start();
    let (daemon, options) = (&server.daemon, ["--expires", "7d", "--note", "for a test"]);
    let token = server.create(&options);
    let json = daemon.result(&[&["token", "create", "--json"], &options[..]].concat());
    let json: Value = serde_json::from_str(&json).unwrap();
    let second = json["token"].as_str().unwrap();
    let list = daemon.result(&["token", "list"]);
    assert!(list.contains("for a test") && list.contains("in 6d"), "{list}");
    let state = daemon.fixture.home.path().join("state/lastbyte/tokens");
    let stored = String::from_utf8_lossy(&fs::read(state).unwrap()).into_owned();
    let said = [list, daemon.result(&["token", "list", "--json"]), daemon.log(), stored];
    for secret in [&token, second] {
        // What is behind the id.
        let secret = secret.splitn(3, '_').nth(2).unwrap();
        assert!(secret.len() > 30);
        assert!(said.iter().all(|text| !text.contains(secret)), "{said:?}");
    }
}

#[test]
fn each_scope_can_be_chosen_and_holds() {
    let server = Server::start();
    let other = server.daemon.testchild(&["--session", "other"], "sleep-ms 600000");
    let all = server.client(&server.create(&[]));
    let read_only = server.client(&server.create(&["--read-only"]));
    let session = server.client(&server.create(&["--session", "task"]));
    assert_eq!(all.ids(), [other.as_str()]);
    let of_all = all.result(&["start", "--", "sleep", "600"]);
    assert!(all.result(&["token", "list"]).contains("session task"));

    assert_eq!(read_only.ids().len(), 2);
    read_only.refused(&["start", "--", "true"], "the token is read-only");
    read_only.refused(&["stop", &of_all], "the token is read-only");

    let own = session.result(&["start", "--key", "k", "--", "sleep", "600"]);
    assert_eq!(session.ids(), [own.as_str()]);
    let shown: Value = serde_json::from_str(&session.result(&["show", "--json", &own])).unwrap();
    assert_eq!((&shown["session"], &shown["key"]), (&"task".into(), &"k".into()));
    session.refused(&["start", "--session", "other", "--", "true"], "for the session \"task\"");
    session.refused(&["stop", &other], "no process");
    session.refused(&["token", "list"], "for the session \"task\"");
    let both = ["token", "create", "--read-only", "--session", "task"];
    assert_eq!(server.daemon.finish(&both).code, Some(2));
    server.daemon.result(&["stop", "--all"]);
}

#[test]
fn an_expired_token_is_refused() {
    let server = Server::start();
    let client = server.client(&server.create(&["--expires", "300ms"]));
    eventually("it expires", || server.daemon.result(&["token", "list"]).contains("expired"));
    client.refused(&["ps"], "token");
}

#[test]
fn a_revoked_token_ends_a_follow_that_is_open() {
    let server = Server::start();
    let id = server.daemon.testchild(&[], "print up\\n then sleep-ms 600000");
    let client = server.client(&server.create(&["--read-only"]));
    let mut follow = start(client.lastbyte(&["logs", "-f", &id]));
    expect(follow.stdout.as_mut().unwrap(), "up\n");
    let list: Value =
        serde_json::from_str(&server.daemon.result(&["token", "list", "--json"])).unwrap();
    server.daemon.result(&["token", "revoke", list["tokens"][0]["id"].as_str().unwrap()]);
    let revoked = Instant::now();
    assert_ne!(follow.wait().unwrap().code(), Some(0));
    // It was told; it did not find out when it asked again by itself.
    assert!(revoked.elapsed() < Duration::from_secs(20));
    let mut said = String::new();
    follow.stderr.unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("token"), "{said}");
    client.refused(&["ps"], "token");
    server.daemon.result(&["stop", &id]);
}
