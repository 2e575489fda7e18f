//! `lastbyte open`: links to the page of a server, and what goes on when its worker is killed.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use lastbyte_testkit::eventually;
use serde_json::{Value, json};

use crate::daemon::Daemon;
use crate::harness::finish;
use crate::pty::Pty;
use crate::take_over::kill_worker;

/// The address and the secret of a printed link.
fn parts(printed: &str) -> (SocketAddr, String) {
    let rest = printed.strip_prefix("http://").unwrap().strip_suffix('\n').unwrap();
    let (address, link) = rest.split_once("/#link=").unwrap();
    (address.parse().unwrap(), link.to_owned())
}

/// The status and the body of an answer.
fn ask(address: SocketAddr, request: &str, body: &str) -> (u16, Value) {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let head = "Host: localhost\r\nConnection: close";
    write!(stream, "{request}\r\n{head}\r\nContent-Length: {length}\r\n\r\n{body}").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap_or_default())
}

fn trade(address: SocketAddr, link: &str) -> (u16, Value) {
    ask(address, "POST /v1/links/trade HTTP/1.1", &json!({ "link": link }).to_string())
}

fn show(address: SocketAddr, id: &str, token: &str) -> u16 {
    let request = format!("GET /v1/processes/{id} HTTP/1.1\r\nAuthorization: Bearer {token}");
    ask(address, &request, "").0
}

#[test]
fn a_page_and_an_unused_link_go_on_at_the_same_port_when_the_worker_is_killed() {
    let daemon = Daemon::start();
    let id = daemon.result(&["start", "--stdin-open", "cat"]);
    let id = id.trim();
    let (address, link) = parts(&daemon.result(&["open", id]));
    assert!(address.ip().is_loopback());
    let (status, traded) = trade(address, &link);
    assert_eq!((status, &traded["process"]), (200, &json!(id)), "{traded}");
    let token = traded["token"].as_str().unwrap();
    let (same, unused) = parts(&daemon.result(&["open", "--print", id]));
    assert_eq!(same, address);
    assert_eq!(show(address, id, token), 200);
    kill_worker(&daemon);
    eventually("the port is open again", || TcpStream::connect(address).is_ok());
    assert_eq!(show(address, id, token), 200, "the page goes on");
    assert_eq!(trade(address, &link).0, 410, "a used link stays used");
    assert_eq!(trade(address, &unused).0, 200);
    daemon.result(&["stop", id]);
}

#[test]
fn a_hand_over_that_is_open_stays_open_when_the_worker_is_killed() {
    let daemon = Daemon::start();
    let id = daemon.result(&["start", "--tty", "24x80", "--stdin-open", "cat"]);
    let id = id.trim();
    daemon.result(&["open", id, "--once", "--expires", "1h"]);
    kill_worker(&daemon);
    let waited = finish(daemon.lastbyte(&["wait", id, "--hand-over", "--timeout", "0s"]));
    assert_eq!(waited.code, Some(124), "{waited:?}");
    daemon.result(&["stop", id]);
}

#[test]
fn a_hand_over_needs_a_process_and_its_end_is_said() {
    let daemon = Daemon::start();
    assert_eq!(finish(daemon.lastbyte(&["open", "--once"])).code, Some(2));
    let id = daemon.result(&["start", "--tty", "24x80", "--stdin-open", "cat"]);
    let id = id.trim();
    daemon.result(&["open", id, "--once", "--expires", "10ms"]);
    assert_eq!(daemon.result(&["wait", id, "--hand-over"]), "nobody used the link in time\n");
    daemon.result(&["stop", id]);
}

/// A program that notes the arguments it gets. A process of its own writes it: a file that we had open for
/// writing might not be run.
#[expect(clippy::disallowed_methods, reason = "the shell is not a command of lastbyte")]
fn browser(folder: &Path, name: &str) -> PathBuf {
    let browser = folder.join(name);
    let script = format!(
        "printf '#!/bin/sh\\necho \"$@\" >>\"$0.got\"\\n' >'{0}'; chmod 755 '{0}'",
        browser.display()
    );
    let written = Command::new("/bin/sh").args(["-c", &script]).status().unwrap();
    assert!(written.success());
    browser
}

#[test]
fn without_a_browser_the_link_is_printed_and_a_person_is_told() {
    let daemon = Daemon::start();
    let mut open = daemon.lastbyte(&["open"]);
    open.env_remove("BROWSER").env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY");
    let mut pty = Pty::new(24, 200);
    assert!(pty.run(open).wait().unwrap().success());
    pty.shows("#link=");
    pty.shows("no browser was started");
}

/// What it got.
fn got(browser: &Path) -> String {
    let got = browser.with_extension("got");
    let got = || fs::read_to_string(&got).unwrap_or_default();
    eventually("the browser is started", || got().ends_with('\n'));
    got()
}

#[test]
fn a_browser_of_ones_own_gets_the_link() {
    let daemon = Daemon::start();
    let folder = tempfile::tempdir().unwrap();
    let browser = browser(folder.path(), "browser");
    let mut open = daemon.lastbyte(&["open"]);
    open.env("BROWSER", &browser);
    let pty = Pty::new(24, 200);
    assert!(pty.run(open).wait().unwrap().success());
    let (address, link) = parts(&got(&browser));
    assert_eq!(trade(address, &link).0, 200);
}

#[test]
fn xdg_open_gets_the_link_in_a_file_and_only_if_a_person_sees_it() {
    let daemon = Daemon::start();
    let folder = tempfile::tempdir().unwrap();
    let browser = browser(folder.path(), "xdg-open");
    let open = |options: &[&str]| {
        let mut open = daemon.lastbyte(&[&["open"], options].concat());
        open.env_remove("BROWSER").env("DISPLAY", ":9").env("PATH", folder.path());
        open
    };
    // Its output is a pipe.
    let printed = finish(open(&[]));
    assert_eq!(printed.code, Some(0), "{printed:?}");
    let (address, _) = parts(&printed.stdout);
    let mut pty = Pty::new(24, 200);
    for options in [&["--print"][..], &["--json"], &[]] {
        let mut child = pty.run(open(options));
        assert!(child.wait().unwrap().success());
    }
    pty.shows("#link=");
    // Of four calls, only the last one had a terminal and was not told to print.
    let got = got(&browser);
    let path = got.strip_prefix("file://").and_then(|rest| rest.strip_suffix(".html\n"));
    let path = format!("{}.html", path.filter(|path| !path.contains('\n')).expect(&got));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let page = fs::read_to_string(&path).unwrap();
    let (_, link) = page.split_once("#link=").unwrap();
    let (link, _) = link.split_once('"').unwrap();
    assert_eq!(trade(address, link).0, 200, "{page}");
}
