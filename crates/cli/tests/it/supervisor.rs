//! A daemon under a supervisor like systemd: socket activation and readiness.

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::process::{Command, Stdio};

use lastbyte_testkit::PATIENCE;
use rustix::process::Signal;

use crate::bare_daemon::{Daemon, get_tcp, get_unix, serve, state};
use crate::harness::{Fixture, LASTBYTE, finish};

/// `lastbyte serve` with these arguments and inherited sockets, which are where systemd puts
/// them: after the standard streams.
fn serve_with(fixture: &Fixture, arguments: &str, sockets: Vec<OwnedFd>) -> Command {
    let count = sockets.len();
    let mut sockets = sockets.into_iter();
    let script = match count {
        1 => "exec 3<&0 </dev/null",
        _ => "exec 3<&0 4<&2 </dev/null 2>/dev/null",
    };
    let script = format!(
        "{script}; LISTEN_PID=$$ LISTEN_FDS={count} LISTEN_FDNAMES=x exec {} serve {arguments}",
        *LASTBYTE
    );
    let mut command = fixture.shell(&script);
    command.env("XDG_RUNTIME_DIR", crate::bare_daemon::runtime(fixture));
    command.stdin(Stdio::from(sockets.next().unwrap()));
    if let Some(second) = sockets.next() {
        command.stderr(Stdio::from(second));
    }
    command
}

#[test]
fn an_inherited_socket_is_used_and_its_file_is_kept() {
    let fixture = Fixture::new();
    let path = fixture.home.path().join("theirs");
    let socket = UnixListener::bind(&path).unwrap();
    let mut daemon = Daemon::start(serve_with(&fixture, "", vec![socket.into()]));
    assert_eq!(daemon.address(), format!("unix:{}", path.display()));
    assert_eq!(get_unix(&path), "HTTP/1.1 200 OK");
    let ours = crate::bare_daemon::runtime(&fixture).join("lastbyte/socket");
    assert!(!ours.exists(), "one is enough");
    // Clients that look in the default place are redirected to it.
    let listed = finish(fixture.lastbyte(&["ps"]));
    assert_eq!((listed.code, listed.stderr.as_str()), (Some(0), ""));
    assert_eq!(daemon.stop(Signal::TERM).code, Some(0));
    assert!(path.exists(), "it is not ours to remove");
}

#[test]
fn an_inherited_port_needs_the_token() {
    let fixture = Fixture::new();
    let path = fixture.home.path().join("theirs");
    let unix = UnixListener::bind(&path).unwrap();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", tcp.local_addr().unwrap());
    let mut daemon = Daemon::start(serve_with(&fixture, "", vec![unix.into(), tcp.into()]));
    assert_eq!(daemon.address(), format!("unix:{}", path.display()));
    assert_eq!(daemon.address(), url);
    assert_eq!(get_tcp(&url, "/nothing", ""), "HTTP/1.1 401 Unauthorized");
    let token = std::fs::read_to_string(state(&fixture).join("token")).unwrap();
    let field = format!("Authorization: Bearer {}\r\n", token.trim());
    assert_eq!(get_tcp(&url, "/nothing", &field), "HTTP/1.1 404 Not Found");
    assert_eq!(daemon.stop(Signal::TERM).code, Some(0));
}

#[test]
fn with_only_an_inherited_port_the_daemon_creates_its_socket() {
    let fixture = Fixture::new();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut daemon = Daemon::start(serve_with(&fixture, "--no-auth", vec![tcp.into()]));
    let ours = crate::bare_daemon::runtime(&fixture).join("lastbyte/socket");
    assert_eq!(daemon.address(), format!("unix:{}", ours.display()));
    assert_eq!(get_tcp(&daemon.address(), "/nothing", ""), "HTTP/1.1 404 Not Found");
}

#[test]
fn an_inherited_public_port_without_a_token_is_refused() {
    let fixture = Fixture::new();
    let tcp = TcpListener::bind("0.0.0.0:0").unwrap();
    let finished = finish(serve_with(&fixture, "--no-auth", vec![tcp.into()]));
    assert_eq!(finished.code, Some(2), "{finished:?}");
    assert!(finished.stderr.contains("allows only loopback addresses"), "{finished:?}");
}

#[test]
fn a_descriptor_that_is_not_a_listening_socket_is_refused() {
    let fixture = Fixture::new();
    let file = std::fs::File::open("/dev/null").unwrap();
    let finished = finish(serve_with(&fixture, "", vec![file.into()]));
    assert_eq!(finished.code, Some(125), "{finished:?}");
    assert!(finished.stderr.contains("not a listening socket"), "{finished:?}");
    let datagrams = UnixDatagram::bind(fixture.home.path().join("datagrams")).unwrap();
    let finished = finish(serve_with(&fixture, "", vec![datagrams.into()]));
    assert_eq!(finished.code, Some(125), "{finished:?}");
}

#[test]
fn sockets_for_another_process_are_ignored() {
    let fixture = Fixture::new();
    let mut command = serve(&fixture, &[]);
    command.env("LISTEN_PID", "1").env("LISTEN_FDS", "1");
    let mut daemon = Daemon::start(command);
    let ours = crate::bare_daemon::runtime(&fixture).join("lastbyte/socket");
    assert_eq!(daemon.address(), format!("unix:{}", ours.display()));
}

/// The next message of the daemon.
fn next_message(supervisor: &UnixDatagram) -> String {
    let mut text = [0; 100];
    let count = supervisor.recv(&mut text).unwrap();
    String::from_utf8_lossy(&text[..count]).into_owned()
}

#[test]
fn the_supervisor_is_notified_when_the_daemon_is_ready_and_stops() {
    let fixture = Fixture::new();
    let path = fixture.home.path().join("notify");
    let supervisor = UnixDatagram::bind(&path).unwrap();
    supervisor.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut command = serve(&fixture, &[]);
    command.env("NOTIFY_SOCKET", &path);
    let daemon = Daemon::start(command);
    assert_eq!(next_message(&supervisor), "READY=1\n");
    let socket = crate::bare_daemon::runtime(&fixture).join("lastbyte/socket");
    assert_eq!(get_unix(socket), "HTTP/1.1 200 OK");
    assert_eq!(daemon.stop(Signal::TERM).code, Some(0));
    assert_eq!(next_message(&supervisor), "STOPPING=1\n");
}

#[test]
fn commands_inherit_neither_the_sockets_nor_their_variables() {
    let fixture = Fixture::new();
    let path = fixture.home.path().join("theirs");
    let socket = UnixListener::bind(&path).unwrap();
    let mut command = serve_with(&fixture, "", vec![socket.into()]);
    command.env("NOTIFY_SOCKET", fixture.home.path().join("nobody"));
    command.env("KEPT", "x");
    let mut daemon = Daemon::start(command);
    daemon.address();
    let script = "env; echo; ls /proc/self/fd | tr '\\n' ' '; readlink /proc/$$/fd/3 || true";
    let id = finish(fixture.lastbyte(&["start", script])).stdout;
    let shown = finish(fixture.lastbyte(&["logs", "-f", id.trim()])).stdout;
    assert!(shown.contains("KEPT=x\n"), "{shown}");
    assert!(!shown.contains("LISTEN_") && !shown.contains("NOTIFY_"), "{shown}");
    assert!(!shown.contains("socket:"), "{shown}");
    assert_eq!(daemon.stop(Signal::TERM).code, Some(0));
}
