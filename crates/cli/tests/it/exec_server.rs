//! `lastbyte exec-server` as a client starts it.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use lastbyte_testkit::{ANCHOR_VARIABLE, children_of, script};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::harness::{Fixture, LASTBYTE, finish, send, start};

/// A server on a pair of pipes, after the handshake.
struct Server {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    anchor: String,
}

fn exec_server(fixture: &Fixture, arguments: &[&str]) -> Command {
    let mut command = fixture.program(&LASTBYTE);
    command.arg("exec-server").args(arguments).stdin(Stdio::piped());
    command
}

impl Server {
    fn start(fixture: &Fixture) -> Self {
        let mut child = start(exec_server(fixture, &["--listen", "stdio"]));
        let (to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let anchor = fixture.anchor.env().1.into_string().unwrap();
        let mut server = Self { child, to, from: BufReader::new(from), anchor };
        let session = server.call("initialize", json!({"clientName": "test"}));
        assert!(session["result"]["sessionId"].is_string(), "{session}");
        server.send(&json!({"method": "initialized"}));
        server
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.to, "{message}").unwrap();
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        self.send(&json!({"id": 7, "method": method, "params": params}));
        self.until(|message| message["id"] == 7)
    }

    fn begin(&mut self, id: &str, actions: &str) {
        let argv: Vec<String> =
            script(actions).into_iter().map(|word| word.into_string().unwrap()).collect();
        let env = json!({ANCHOR_VARIABLE: self.anchor});
        let params =
            json!({"processId": id, "argv": argv, "cwd": "file:///", "env": env, "tty": false});
        let answer = self.call("process/start", params);
        assert_eq!(answer["result"]["processId"], id, "{answer}");
    }

    fn until(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let mut line = String::new();
            assert_ne!(self.from.read_line(&mut line).unwrap(), 0, "it has ended");
            let message = serde_json::from_str(&line).unwrap();
            if is_it(&message) {
                return message;
            }
        }
    }
}

/// Trees that a process group or a session does not hold together, of a process that runs and of one that
/// has exited.
fn begin_trees(fixture: &Fixture, server: &mut Server) {
    server.begin("running", "stubborn-tree 3 then setsid-background hold end then hold");
    server.begin("exited", "double-fork-background hold end");
    server.until(|message| message["method"] == "process/exited");
    fixture.anchor.wait_for(6);
}

#[test]
fn the_end_of_input_stops_everything_and_exits_with_0() {
    let fixture = Fixture::new();
    let mut server = Server::start(&fixture);
    begin_trees(&fixture, &mut server);
    drop(server.to);
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
    fixture.anchor.wait_for_at_most(0);
    assert!(fixture.folders().is_empty(), "its files are gone");
}

#[test]
fn a_signal_stops_everything() {
    let fixture = Fixture::new();
    let mut server = Server::start(&fixture);
    begin_trees(&fixture, &mut server);
    send(&server.child, Signal::TERM);
    assert_eq!(server.child.wait().unwrap().code(), Some(143));
    fixture.anchor.wait_for_at_most(0);
}

#[test]
fn nothing_outlives_a_server_that_is_killed() {
    let fixture = Fixture::new();
    let mut server = Server::start(&fixture);
    begin_trees(&fixture, &mut server);
    send(&server.child, Signal::KILL);
    server.child.wait().unwrap();
    fixture.anchor.wait_for_at_most(0);
}

#[test]
fn nothing_outlives_a_worker_that_is_killed() {
    let fixture = Fixture::new();
    let mut server = Server::start(&fixture);
    begin_trees(&fixture, &mut server);
    let workers = children_of(server.child.id());
    let [worker] = workers[..] else { panic!("one worker: {workers:?}") };
    kill_process(Pid::from_raw(worker.cast_signed()).unwrap(), Signal::KILL).unwrap();
    assert_eq!(server.child.wait().unwrap().code(), Some(137));
    fixture.anchor.wait_for_at_most(0);
}

/// The URL of a server on a port, which it prints first.
fn url_of(child: &mut Child) -> String {
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

fn status(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap_or_default().to_owned()
}

#[test]
fn the_printed_url_has_a_secret_path_unless_it_is_told_not_to() {
    let fixture = Fixture::new();
    let mut secrets = Vec::new();
    for arguments in [&[][..], &["--listen", "ws://127.0.0.1:0"], &["--no-auth"]] {
        let mut child = start(exec_server(&fixture, arguments));
        let url = url_of(&mut child);
        let rest = url.strip_prefix("ws://").unwrap();
        let (address, secret) = rest.split_once('/').unwrap_or((rest, ""));
        assert_eq!(status(address, "/readyz"), "200");
        // A plain request for the right path lacks only the upgrade.
        assert_eq!(status(address, &format!("/{secret}")), "400");
        if !arguments.contains(&"--no-auth") {
            assert_eq!(status(address, "/"), "404");
            secrets.push(secret.to_owned());
        }
        send(&child, Signal::TERM);
        assert_eq!(child.wait().unwrap().code(), Some(143));
    }
    assert!(secrets[0].len() > 22 && secrets[0] != secrets[1], "{secrets:?}");
}

#[test]
fn only_loopback_is_served() {
    let fixture = Fixture::new();
    let finished = finish(exec_server(&fixture, &["--listen", "ws://0.0.0.0:0"]));
    let refusal = "lastbyte: cannot listen on 0.0.0.0:0: only loopback addresses are served\n";
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(125), refusal));
}

/// As Codex sends it for `workspace-write`.
fn workspace(root: &Path) -> Value {
    let special = |kind: &str, access: &str| json!({"path": {"type": "special", "value": {"kind": kind}}, "access": access});
    json!({
        "permissions": {"type": "managed", "network": "restricted", "file_system": {
            "type": "restricted",
            "entries": [special("root", "read"), special("project_roots", "write")],
        }},
        "workspaceRoots": [format!("file://{}", root.display())],
        "windowsSandboxLevel": "disabled",
    })
}

#[test]
fn a_file_is_written_only_where_the_sandbox_of_the_request_allows_it() {
    let fixture = Fixture::new();
    let mut server = Server::start(&fixture);
    // Not below /tmp, which policies treat apart.
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let (inside, outside) = (folder.path().join("in"), folder.path().join("out"));
    for folder in [&inside, &outside] {
        fs::create_dir(folder).unwrap();
    }
    symlink(&outside, inside.join("link")).unwrap();
    let mut write = |path: &Path| {
        let params = json!({"path": format!("file://{}", path.display()), "dataBase64": "aGk=",
            "sandbox": workspace(&inside)});
        server.call("fs/writeFile", params)
    };
    let written = write(&inside.join("f"));
    let refused = [write(&outside.join("f")), write(&inside.join("link/f"))];
    if written["error"]["message"]
        .as_str()
        .is_some_and(|text| text.contains("prepare process sandbox"))
    {
        // A machine that cannot enforce it does nothing.
        assert!(!inside.join("f").exists());
    } else {
        assert_eq!(written["result"], json!({}), "{written}");
        assert_eq!(fs::read(inside.join("f")).unwrap(), b"hi");
    }
    for answer in refused {
        assert!(answer["error"].is_object(), "{answer}");
    }
    assert!(!outside.join("f").exists());
}
