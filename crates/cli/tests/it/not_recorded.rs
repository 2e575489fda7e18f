//! What the server knows and could not write to disk is reported in the log, in `/healthz`, in the
//! metrics and in every answer.
#![expect(clippy::disallowed_methods, reason = "a test harness around the test, not a command")]

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use lastbyte_testkit::{eventually, inside};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::{Finished, Fixture, finish, kill_server, send, start};

const MOUNTS: [&str; 2] = ["--mount", "--propagation=private"];

/// A server whose log can be read while it runs, and whose socket is not in its state folder.
struct Server {
    fixture: Fixture,
    server: Child,
}

impl Server {
    fn start() -> Self {
        let fixture = Fixture::new();
        let server = serve(&fixture);
        let server = Self { fixture, server };
        eventually("it listens", || server.try_get("healthz").is_some());
        server
    }

    fn try_get(&self, path: &str) -> Option<String> {
        let mut curl = self.fixture.program("curl");
        let socket = self.fixture.home.path().join("runtime/lastbyte/socket");
        curl.args(["-sS", "--unix-socket"]).arg(socket).arg(format!("http://localhost/{path}"));
        Some(finish(curl)).filter(|curl| curl.code == Some(0)).map(|curl| curl.stdout)
    }

    fn health(&self) -> Value {
        serde_json::from_str(&self.try_get("healthz").unwrap()).unwrap()
    }

    /// The value of a metric.
    fn number(&self, name: &str) -> String {
        let page = self.try_get("metrics").unwrap();
        let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name} in {page}")).to_owned()
    }

    fn finish(&self, arguments: &[&str]) -> Finished {
        finish(self.fixture.lastbyte(arguments))
    }

    /// Runs a command to its end; returns its id.
    fn run(&self) -> String {
        let started = self.finish(&["start", "echo x"]);
        let id = started.stdout.trim().to_owned();
        assert_eq!(self.finish(&["wait", &id]).code, Some(0), "{started:?}");
        id
    }

    /// The number of log lines with this message.
    fn told(&self, message: &str) -> usize {
        let log = fs::read_to_string(log(&self.fixture)).unwrap();
        log.lines().filter(|line| line.contains(message)).count()
    }

    fn state(&self) -> PathBuf {
        self.fixture.home.path().join("state/lastbyte")
    }

    /// Kills it and starts another one.
    fn crash(&mut self) {
        kill_server(&mut self.server);
        self.server = serve(&self.fixture);
        eventually("it listens", || self.try_get("healthz").is_some());
    }

    fn knows(&self, id: &str) -> bool {
        self.finish(&["show", id]).code == Some(0)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        send(&self.server, Signal::TERM);
        self.server.wait().unwrap();
    }
}

fn log(fixture: &Fixture) -> PathBuf {
    fixture.home.path().join("log")
}

fn serve(fixture: &Fixture) -> Child {
    let mut command = fixture.lastbyte(&["serve"]);
    let log = File::options().create(true).append(true).open(log(fixture)).unwrap();
    command.stdout(Stdio::null()).stderr(log);
    start(command)
}

/// A file system of 4 MiB that can be filled; unmounted when dropped.
struct FullDisk {
    folder: PathBuf,
}

impl FullDisk {
    fn at(folder: &Path) -> Self {
        fs::create_dir_all(folder).unwrap();
        let mut mount = Command::new("mount");
        let status = mount.args(["-t", "tmpfs", "-o", "size=4m", "tmpfs"]).arg(folder).status();
        assert!(status.expect("mount is installed").success());
        Self { folder: folder.to_owned() }
    }

    fn fill(&self) {
        let mut file = File::create(self.folder.join("filler")).unwrap();
        while file.write_all(&[1; 4096]).is_ok() {}
    }

    fn free_space(&self) {
        fs::remove_file(self.folder.join("filler")).unwrap();
    }
}

impl Drop for FullDisk {
    fn drop(&mut self) {
        _ = Command::new("umount").arg("--lazy").arg(&self.folder).status();
    }
}

const CANNOT: &str = "cannot write the journal";
const AGAIN: &str = "the journal is writable again; all records are on disk";
const REMOVED: &str = "the state directory or its journal was removed";
const NOT_RECORDED: &str =
    "no: the server cannot write to disk and loses this process if it is killed";

#[test]
fn a_full_disk_is_reported_everywhere_until_it_has_space() {
    let name = "not_recorded::a_full_disk_is_reported_everywhere_until_it_has_space";
    if !inside(name, &MOUNTS) {
        return;
    }
    let fixture = Fixture::new();
    let disk = FullDisk::at(&fixture.home.path().join("state"));
    let mut server = Server { server: serve(&fixture), fixture };
    eventually("it listens", || server.try_get("healthz").is_some());
    let healthy = server.health();
    assert_eq!((&healthy["status"], &healthy["journal"]), (&json!("ok"), &json!({"kind": "ok"})));
    let early = server.run();
    disk.fill();
    // A few records still fit into the last block.
    let late: Vec<String> = (0..30).map(|_| server.run()).collect();
    let last = &late[29];
    let health = server.health();
    assert_eq!(health["status"], "degraded");
    assert_eq!(health["journal"]["kind"], "waiting");
    assert_eq!(health["journal"]["why"], "No space left on device (os error 28)");
    assert_eq!(server.number("lastbyte_journal_ok"), "0");
    assert_ne!(server.number("lastbyte_journal_waiting_bytes"), "0");
    let shown = server.finish(&["show", last]);
    assert!(shown.stdout.contains(&format!("recorded   {NOT_RECORDED}\n")), "{shown:?}");
    assert!(!server.finish(&["show", &early]).stdout.contains("recorded"));
    let waited = server.finish(&["wait", last]);
    assert_eq!(waited.stderr, format!("lastbyte: recorded: {NOT_RECORDED}\n"));
    eventually("it is in the log", || server.told(CANNOT) > 0);
    assert_eq!(server.told(CANNOT), 1, "once, not for each record");
    let recorded = |id: &String| {
        let shown = server.finish(&["show", id, "--json"]).stdout;
        serde_json::from_str::<Value>(&shown).unwrap()["recorded"] == true
    };
    let (safe, unsafe_): (Vec<_>, Vec<_>) = late.iter().partition(|id| recorded(id));
    assert!(!unsafe_.is_empty());
    let (safe, lost): (Vec<String>, Vec<String>) =
        (safe.into_iter().cloned().collect(), unsafe_.into_iter().cloned().collect());
    server.crash();
    assert!(safe.iter().chain([&early]).all(|id| server.knows(id)), "what is recorded stays");
    assert!(lost.iter().all(|id| !server.knows(id)), "the test is of a disk that is full");
    // This time there is space again before the server ends.
    let waiting = server.run();
    assert_eq!(server.health()["status"], "degraded");
    disk.free_space();
    eventually("it is well again", || server.health()["status"] == "ok");
    assert_eq!(server.number("lastbyte_journal_ok"), "1");
    assert_eq!(server.number("lastbyte_journal_waiting_bytes"), "0");
    eventually("that is in the log", || server.told(AGAIN) == 1);
    server.crash();
    assert!(server.knows(&waiting));
}

#[test]
fn a_removed_state_folder_is_reported_and_created_again() {
    let mut server = Server::start();
    let early = server.run();
    let state = server.state();
    eventually("it is removed", || fs::remove_dir_all(&state).is_ok());
    // A request is enough to notice it.
    let health = server.health();
    assert_eq!((&health["status"], &health["journal"]), (&json!("ok"), &json!({"kind": "ok"})));
    assert_eq!(server.number("lastbyte_journal_rewritten_total"), "1");
    eventually("it is in the log", || server.told(REMOVED) == 1);
    let late = server.run();
    server.crash();
    assert!(server.knows(&early) && server.knows(&late));
}

#[test]
fn a_socket_removed_with_the_state_folder_is_created_again() {
    let fixture = Fixture::new();
    let mut command = fixture.lastbyte(&["serve"]);
    // As in a container that has no runtime folder.
    command.env_remove("XDG_RUNTIME_DIR").stdout(Stdio::null()).stderr(Stdio::null());
    let mut server = start(command);
    let state = fixture.home.path().join("state/lastbyte");
    let socket = state.join("socket");
    let lastbyte = |arguments: &[&str]| {
        let mut command = fixture.lastbyte(arguments);
        command.args(["--socket", socket.to_str().unwrap()]);
        finish(command)
    };
    eventually("it listens", || lastbyte(&["ps"]).code == Some(0));
    let id = lastbyte(&["start", "echo x"]).stdout.trim().to_owned();
    eventually("it is removed", || fs::remove_dir_all(&state).is_ok());
    eventually("it listens again", || lastbyte(&["show", &id]).code == Some(0));
    assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    send(&server, Signal::TERM);
    server.wait().unwrap();
    assert!(!socket.exists(), "it goes with the server");
}
