//! `lastbyte app-server` as a client starts it.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use lastbyte_testkit::{eventually, script};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::{Fixture, LASTBYTE, finish, send, start};

/// A server on a pair of pipes, after the handshake.
struct Server {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

fn app_server(fixture: &Fixture, arguments: &[&str]) -> Command {
    let mut command = fixture.program(&LASTBYTE);
    command.arg("app-server").args(arguments).stdin(Stdio::piped());
    command
}

impl Server {
    fn start(fixture: &Fixture) -> Self {
        Self::start_by(app_server(fixture, &[]))
    }

    fn start_by(command: Command) -> Self {
        Self::shake_hands(command).0
    }

    /// Returns the server and its answer to the handshake.
    fn shake_hands(command: Command) -> (Self, Value) {
        let mut child = start(command);
        let (to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut server = Self { child, to, from: BufReader::new(from) };
        let client = json!({"clientInfo": {"name": "test", "version": "0"}});
        server.send(&json!({"id": 0, "method": "initialize", "params": client}));
        let answer = server.next();
        assert_eq!(answer["id"], 0);
        (server, answer["result"].clone())
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.to, "{message}").unwrap();
    }

    fn exec(&mut self, id: i64, actions: &str) {
        self.exec_with(id, actions, json!({}));
    }

    fn exec_with(&mut self, id: i64, actions: &str, more: Value) {
        let words = script(actions).into_iter().map(|word| word.into_string().unwrap());
        let command: Vec<String> = words.collect();
        let mut params = json!({"command": command, "disableTimeout": true});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.send(&json!({"id": id, "method": "command/exec", "params": params}));
    }

    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.from.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// Returns the rest of its output, and its exit code.
    fn finish(mut self) -> (String, Option<i32>) {
        drop(self.to);
        let mut rest = String::new();
        self.from.read_to_string(&mut rest).unwrap();
        (rest, self.child.wait().unwrap().code())
    }
}

#[test]
fn the_end_of_input_stops_all_commands_and_exits_with_0() {
    let fixture = Fixture::new();
    let mut server = Server::start(&fixture);
    server.exec(1, "print before then exit 3");
    let answer = server.next();
    assert_eq!((&answer["id"], &answer["result"]["exitCode"]), (&json!(1), &json!(3)));
    server.exec(2, "stubborn-tree 6 then hold");
    fixture.anchor.wait_for(7);
    assert_eq!(server.finish(), (String::new(), Some(0)));
    fixture.anchor.wait_for_at_most(0);
    assert!(fixture.folders().is_empty(), "its files are gone");
}

#[test]
fn a_signal_ends_the_server_and_everything_it_started() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)] {
        let fixture = Fixture::new();
        let mut server = Server::start(&fixture);
        server.exec(1, "leave-silent-holder");
        server.next();
        server.exec(2, "stubborn-tree 3 then hold");
        fixture.anchor.wait_for(5);
        send(&server.child, signal);
        assert_eq!(server.child.wait().unwrap().code(), Some(code));
        fixture.anchor.wait_for_at_most(0);
        assert!(fixture.folders().is_empty());
    }
}

#[test]
fn commands_do_not_inherit_ignored_signals() {
    let fixture = Fixture::new();
    let script = r#"exec env --ignore-signal=HUP,INT,QUIT,PIPE "$LASTBYTE" app-server"#;
    let mut command = fixture.shell(script);
    command.stdin(Stdio::piped());
    let mut server = Server::start_by(command);
    server.exec(1, "report");
    let report: Value =
        serde_json::from_str(server.next()["result"]["stdout"].as_str().unwrap()).unwrap();
    assert_eq!((&report["not_default"], &report["blocked"]), (&json!([]), &json!([])));
    // The signal kills them, on pipes and on a terminal.
    for (id, tty) in [(2, false), (3, true)] {
        server.exec_with(id, "kill-self 2", json!({"tty": tty, "processId": "p"}));
        let answer = server.next();
        assert_eq!((&answer["id"], &answer["result"]["exitCode"]), (&json!(id), &json!(130)));
    }
    assert_eq!(server.finish().1, Some(0));
}

#[test]
fn a_client_that_closes_our_output_ends_the_server() {
    let fixture = Fixture::new();
    let mut server = Server::start(&fixture);
    server.exec(1, "hold");
    fixture.anchor.wait_for(1);
    let Server { mut child, mut to, from } = server;
    drop(from);
    // The server notices it at its next write.
    _ = writeln!(to, "{}", json!({"id": 2, "method": "no/such", "params": {}}));
    assert_eq!(child.wait().unwrap().code(), Some(0));
    fixture.anchor.wait_for_at_most(0);
}

#[test]
fn it_removes_its_unix_socket_when_it_ends() {
    let fixture = Fixture::new();
    let path = fixture.home.path().join("socket");
    let mut child =
        start(app_server(&fixture, &["--listen", &format!("unix://{}", path.display())]));
    eventually("it listens", || UnixStream::connect(&path).is_ok());
    let mut stream = UnixStream::connect(&path).unwrap();
    stream
        .write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    send(&child, Signal::TERM);
    assert_eq!(child.wait().unwrap().code(), Some(143));
    assert!(!path.exists());
}

#[test]
fn it_prints_its_address() {
    let fixture = Fixture::new();
    let mut child = start(app_server(&fixture, &["--listen", "ws://127.0.0.1:0"]));
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.next().unwrap(), "lastbyte: app-server (WebSockets)");
    for begin in ["listening on: ws://127.0.0.1:", "readyz: http://127.0.0.1:", "healthz: http://"]
    {
        let line = lines.next().unwrap();
        assert!(line.starts_with(&format!("lastbyte:   {begin}")), "{line}");
    }
    send(&child, Signal::TERM);
    child.wait().unwrap();
}

#[test]
fn an_address_that_is_not_loopback_is_refused() {
    let fixture = Fixture::new();
    let finished = finish(app_server(&fixture, &["--listen", "ws://0.0.0.0:0"]));
    let refusal = "lastbyte: refusing to start non-loopback websocket listener 0.0.0.0:0 without \
                   auth; only loopback addresses are served\n";
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(125), refusal));
}

#[test]
fn codex_exec_server_url_makes_it_refuse_commands() {
    for (value, refused) in [("none", true), ("ws://127.0.0.1:1", true), (" ", false)] {
        let fixture = Fixture::new();
        let mut command = app_server(&fixture, &[]);
        command.env("CODEX_EXEC_SERVER_URL", value);
        let mut server = Server::start_by(command);
        server.exec(1, "exit 0");
        let answer = server.next();
        let error = json!({"code": -32603, "message": "local environment is not configured"});
        let want = if refused { error } else { Value::Null };
        assert_eq!(answer["error"], want, "{value:?}: {answer}");
        assert_eq!(server.finish(), (String::new(), Some(0)));
    }
}

#[test]
fn codex_home_is_the_one_in_the_environment_or_a_folder_of_its_own() {
    let fixture = Fixture::new();
    let chosen = tempfile::tempdir().unwrap();
    let home = |value: Option<&str>| {
        let mut command = app_server(&fixture, &[]);
        command.env_remove("CODEX_HOME");
        value.map(|value| command.env("CODEX_HOME", value));
        let (server, answer) = Server::shake_hands(command);
        let home = answer["codexHome"].as_str().unwrap().to_owned();
        assert!(std::path::Path::new(&home).is_dir(), "{home}");
        assert_eq!(server.finish(), (String::new(), Some(0)));
        home
    };
    let canonical = chosen.path().canonicalize().unwrap();
    let dotted = format!("{}/.", chosen.path().display());
    assert_eq!(home(Some(&dotted)), canonical.to_str().unwrap());
    for value in [None, Some(""), Some("/no/such/folder")] {
        assert!(home(value).contains("/runs/"), "{value:?}");
    }
    assert!(chosen.path().read_dir().unwrap().next().is_none(), "nothing is put there");
}
