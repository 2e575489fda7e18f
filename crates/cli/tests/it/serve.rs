use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Stdio;

use lastbyte_testkit::PATIENCE;
use rustix::process::Signal;
use serde_json::json;

use crate::bare_daemon::{
    Daemon, answer, connect, get_tcp, get_unix, log, mode, post, runtime, serve, state,
};
use crate::harness::{Fixture, finish, send, start};

const OK: &str = "HTTP/1.1 200 OK";
const UNAUTHORIZED: &str = "HTTP/1.1 401 Unauthorized";

#[test]
fn a_daemon_says_where_it_listens_and_answers_there() {
    let fixture = Fixture::new();
    let mut daemon = Daemon::start(serve(&fixture, &[]));
    let socket = runtime(&fixture).join("lastbyte/socket");
    assert_eq!(daemon.address(), format!("unix:{}", socket.display()));
    assert_eq!(get_unix(&socket), OK);
    assert_eq!(mode(&socket), 0o600);
    assert_eq!(mode(socket.parent().unwrap()), 0o700);
    assert_eq!(mode(state(&fixture)), 0o700);
    let finished = daemon.stop(Signal::TERM);
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(0), ""), "{finished:?}");
    assert!(!socket.exists());
    assert!(!state(&fixture).join("token").exists(), "nobody needs one");
}

#[test]
fn every_stop_signal_ends_it_with_exit_code_0() {
    let fixture = Fixture::new();
    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT] {
        let mut daemon = Daemon::start(serve(&fixture, &[]));
        daemon.address();
        assert_eq!(daemon.stop(signal).code, Some(0), "{signal:?}");
    }
}

#[test]
fn the_token_is_created_once_and_required() {
    let fixture = Fixture::new();
    let arguments = ["--listen", "127.0.0.1:0", "--listen", "127.0.0.1:0"];
    let file = state(&fixture).join("token");
    let mut tokens = Vec::new();
    for _ in 0..2 {
        let mut daemon = Daemon::start(serve(&fixture, &arguments));
        assert!(daemon.address().starts_with("unix:"));
        let urls = [daemon.address(), daemon.address()];
        assert!(urls.iter().all(|url| !url.ends_with(":0")), "{urls:?}");
        let token = fs::read_to_string(&file).unwrap();
        let right = format!("Authorization: Bearer {}\r\n", token.trim());
        assert_eq!(get_tcp(&urls[0], "/nothing", ""), UNAUTHORIZED);
        assert_eq!(get_tcp(&urls[1], "/nothing", "Authorization: Bearer no\r\n"), UNAUTHORIZED);
        assert_eq!(get_tcp(&urls[1], "/nothing", &right), "HTTP/1.1 404 Not Found");
        assert_eq!(get_tcp(&urls[0], "/healthz", ""), OK);
        let finished = daemon.stop(Signal::TERM);
        let want = format!("lastbyte: the token is in {}\n", file.display());
        assert!(finished.stderr.contains(&want), "{finished:?}");
        assert!(!finished.stderr.contains(token.trim()), "the token is in the log");
        tokens.push(token);
    }
    assert_eq!(mode(&file), 0o600);
    assert_eq!(tokens[0], tokens[1]);
}

#[test]
fn a_token_that_others_can_read_is_refused() {
    let fixture = Fixture::new();
    fs::create_dir_all(state(&fixture)).unwrap();
    let file = state(&fixture).join("token");
    fs::write(&file, "0123456789abcdef0123456789abcdef").unwrap();
    fs::set_permissions(&file, PermissionsExt::from_mode(0o640)).unwrap();
    let finished = finish(serve(&fixture, &["--listen", "127.0.0.1:0"]));
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(125), ""));
    assert!(finished.stderr.contains("mode 640"), "{finished:?}");
    let socket = runtime(&fixture).join("lastbyte/socket");
    assert!(!socket.exists(), "what was made is removed");
}

#[test]
fn no_auth_is_only_for_loopback() {
    let fixture = Fixture::new();
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:80"] {
        let arguments = ["--no-auth", "--listen", "127.0.0.1:0", "--listen", address];
        let finished = finish(serve(&fixture, &arguments));
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(2), ""), "{finished:?}");
        assert!(
            finished.stderr.contains(&format!("only loopback addresses, not {address}")),
            "{finished:?}"
        );
    }
    let mut daemon = Daemon::start(serve(&fixture, &["--no-auth", "--listen", "127.0.0.1:0"]));
    daemon.address();
    let url = daemon.address();
    assert_eq!(get_tcp(&url, "/nothing", ""), "HTTP/1.1 404 Not Found");
    assert_eq!(daemon.stop(Signal::TERM).code, Some(0));
}

#[test]
fn localhost_listens_on_loopback_only() {
    let fixture = Fixture::new();
    let mut daemon = Daemon::start(serve(&fixture, &["--no-auth", "--listen", "localhost:0"]));
    daemon.address();
    let url = daemon.address();
    assert!(url.starts_with("http://127.0.0.1:"), "{url}");
    assert_eq!(get_tcp(&url, "/healthz", ""), OK);
    assert_eq!(daemon.stop(Signal::TERM).code, Some(0));
}

#[test]
fn a_host_name_to_listen_on_is_refused_with_a_hint() {
    let finished = finish(serve(&Fixture::new(), &["--listen", "example.com:80"]));
    let want = "lastbyte: invalid value 'example.com:80' for '--listen <IP:PORT>': expected IP:PORT, \
                like 127.0.0.1:8722 or [::1]:8722, or localhost:PORT (127.0.0.1)\n";
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(2), ""));
    assert!(finished.stderr.starts_with(want), "{}", finished.stderr);
}

#[test]
fn a_second_daemon_on_the_same_socket_is_refused() {
    let fixture = Fixture::new();
    let mut daemon = Daemon::start(serve(&fixture, &[]));
    let socket = daemon.address();
    let finished = finish(serve(&fixture, &["--socket", "/proc/nowhere/socket"]));
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(125), ""));
    let want = format!(
        "lastbyte: a server (pid {}) already uses state directory {}; stop it with `lastbyte shutdown`, \
         or choose another directory with --state DIR\n",
        daemon.child.id(),
        state(&fixture).display()
    );
    assert_eq!(finished.stderr, want);
    assert_eq!(get_unix(socket.strip_prefix("unix:").unwrap()), OK);
}

#[test]
fn two_daemons_with_separate_state_folders_can_run() {
    let fixture = Fixture::new();
    let folder = fixture.home.path().join("other");
    let mut first = Daemon::start(serve(&fixture, &[]));
    let mut second = Daemon::start(serve(&fixture, &["--state", folder.to_str().unwrap()]));
    first.address();
    assert_eq!(second.address(), format!("unix:{}", folder.join("socket").display()));
    assert_eq!(get_unix(folder.join("socket")), OK);
}

#[test]
fn the_socket_and_lock_of_a_killed_daemon_are_replaced() {
    let fixture = Fixture::new();
    let mut killed = Daemon::start(serve(&fixture, &[]));
    killed.address();
    assert_eq!(killed.stop(Signal::KILL).code, None);
    let socket = runtime(&fixture).join("lastbyte/socket");
    assert!(socket.exists());
    let mut next = Daemon::start(serve(&fixture, &[]));
    next.address();
    assert_eq!(get_unix(&socket), OK);
}

#[test]
fn the_socket_of_another_program_is_left_alone() {
    let fixture = Fixture::new();
    let path = fixture.home.path().join("theirs");
    let _theirs = UnixListener::bind(&path).unwrap();
    let finished = finish(serve(&fixture, &["--socket", path.to_str().unwrap()]));
    let path_shown = path.display();
    let want = format!(
        "lastbyte: another server already listens on {path_shown}; stop it with `lastbyte shutdown \
         --socket {path_shown}`, or choose another --socket\n"
    );
    assert_eq!((finished.code, finished.stderr), (Some(125), want));
    assert!(path.exists());
}

#[test]
fn a_socket_path_that_is_too_long_is_named() {
    let fixture = Fixture::new();
    let path = format!("/tmp/{}", "x".repeat(200));
    let finished = finish(serve(&fixture, &["--socket", &path]));
    assert_eq!(finished.code, Some(125));
    let want = "is too long (205 bytes, at most 107): choose a shorter one";
    assert!(finished.stderr.contains(want), "{finished:?}");
}

#[test]
fn a_port_that_is_taken_is_named() {
    let fixture = Fixture::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let finished = finish(serve(&fixture, &["--no-auth", "--listen", &address]));
    assert_eq!(finished.code, Some(125));
    let want = format!("lastbyte: cannot listen on {address}: ");
    assert!(finished.stderr.starts_with(&want), "{finished:?}");
}

#[test]
fn a_host_name_that_was_given_is_accepted() {
    let fixture = Fixture::new();
    let options = ["--host", "Build.example", "--listen", "127.0.0.1:0"];
    let mut daemon = Daemon::start(serve(&fixture, &options));
    daemon.address();
    let url = daemon.address();
    for (host, want) in [("build.EXAMPLE:80", OK), ("example", "HTTP/1.1 421 Misdirected Request")]
    {
        let mut stream = TcpStream::connect(url.strip_prefix("http://").unwrap()).unwrap();
        let request = format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        assert_eq!(line.trim_end(), want);
    }
}

#[test]
fn requests_are_logged_without_their_contents() {
    let fixture = Fixture::new();
    let mut daemon = Daemon::start(serve(&fixture, &["--no-auth", "--listen", "127.0.0.1:0"]));
    daemon.address();
    let url = daemon.address();
    get_tcp(&url, "/nothing?key=secret", "Authorization: Bearer secret\r\nCookie: secret\r\n");
    let finished = daemon.stop(Signal::TERM);
    assert!(!finished.stderr.contains("secret"), "{finished:?}");
    let log = log(&finished.stderr);
    let line = log.iter().find(|line| line["target"] == "access").unwrap();
    assert_eq!((&line["method"], &line["path"]), (&"GET".into(), &"/nothing".into()), "{line}");
    assert_eq!(line["status"], 404, "{line}");
    assert!(line["us"].is_u64() && line["peer"].as_str().unwrap().starts_with("127.0.0.1:"));
}

#[test]
fn the_log_level_can_be_set() {
    let fixture = Fixture::new();
    for (level, loud) in [("off", false), ("error", false), ("info", true), ("debug", true)] {
        let mut command = serve(&fixture, &[]);
        command.env("LASTBYTE_LOG", level);
        let mut daemon = Daemon::start(command);
        daemon.address();
        let finished = daemon.stop(Signal::TERM);
        assert_eq!(finished.stderr.contains("shutting down"), loud, "{level}: {finished:?}");
    }
    let mut command = serve(&fixture, &[]);
    command.env("LASTBYTE_LOG", "loud");
    let finished = finish(command);
    let want = "lastbyte: LASTBYTE_LOG: invalid value 'loud' for log: expected \
                error, warn, info, debug or off\n";
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(2), want));
}

#[test]
fn a_daemon_survives_the_reader_of_its_log() {
    let fixture = Fixture::new();
    let mut daemon = Daemon::start(serve(&fixture, &[]));
    let socket = daemon.address();
    let socket = socket.strip_prefix("unix:").unwrap();
    drop(daemon.stderr.take());
    for _ in 0..100 {
        assert_eq!(get_unix(socket), OK);
    }
    send(&daemon.child, Signal::TERM);
    assert_eq!(daemon.child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_daemon_does_not_block_on_an_unread_log() {
    let fixture = Fixture::new();
    let mut daemon = Daemon::start(serve(&fixture, &[]));
    let socket = daemon.address();
    let socket = socket.strip_prefix("unix:").unwrap();
    // Far more lines than the pipe and the queue can hold.
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let request = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(50);
    let mut answers = BufReader::new(stream.try_clone().unwrap());
    for _ in 0..100 {
        stream.write_all(request.as_bytes()).unwrap();
        let mut heads = 0;
        let mut line = String::new();
        while heads < 50 {
            line.clear();
            assert_ne!(answers.read_line(&mut line).unwrap(), 0);
            heads += usize::from(line.contains("HTTP/1.1 200 OK"));
        }
    }
    send(&daemon.child, Signal::TERM);
    assert_eq!(daemon.child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_daemon_can_run_without_output_streams() {
    let fixture = Fixture::new();
    let mut command = serve(&fixture, &[]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = start(command);
    let socket = runtime(&fixture).join("lastbyte/socket");
    lastbyte_testkit::eventually("it listens", || UnixStream::connect(&socket).is_ok());
    assert_eq!(get_unix(&socket), OK);
    send(&child, Signal::TERM);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn an_unexpected_argument_is_not_explained_as_one_of_run() {
    let finished = finish(serve(&Fixture::new(), &["make"]));
    assert_eq!(finished.code, Some(2));
    assert!(!finished.stderr.contains("lastbyte run"), "{finished:?}");
}

#[test]
fn an_environment_hook_gives_commands_their_environment() {
    let fixture = Fixture::new();
    let hook = "printf 'PATH=%s\\0HOOKED=yes\\0' \"$PATH\"";
    let mut daemon = Daemon::start(serve(&fixture, &["--env-hook", hook]));
    daemon.address();
    let stream = connect(&fixture);
    let run = json!({ "shell": "echo $HOOKED ${HOME-none}", "cwd": "/", "wait": { "exit": true } });
    post(&stream, "/v1/processes", &run);
    assert_eq!(answer(stream)["output"]["content"]["head"], "yes none\n");
}

#[test]
fn an_environment_hook_that_fails_is_a_warning_in_the_log() {
    let fixture = Fixture::new();
    let mut daemon = Daemon::start(serve(&fixture, &["--env-hook", "exit 3", "--log", "warn"]));
    daemon.address();
    let stream = connect(&fixture);
    post(&stream, "/v1/processes", &json!({ "shell": "true", "wait": { "exit": true } }));
    let want = "--env-hook failed: exit code 3; the variables it prints are not set";
    assert_eq!(answer(stream)["warnings"], json!([want]));
    let finished = daemon.stop(Signal::TERM);
    assert!(finished.stderr.contains(want), "{finished:?}");
}

#[test]
fn the_daemon_serves_codex_clients() {
    let fixture = Fixture::new();
    let mut daemon = Daemon::start(serve(&fixture, &[]));
    daemon.address();
    let mut stream = connect(&fixture);
    let upgrade = "GET /codex HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n\
        Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
        Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    stream.write_all(upgrade.as_bytes()).unwrap();
    let mut head = [0; 12];
    stream.read_exact(&mut head).unwrap();
    assert_eq!(&head, b"HTTP/1.1 101");
    // A connected client does not delay the shutdown.
    assert_eq!(daemon.stop(Signal::TERM).code, Some(0));
}
