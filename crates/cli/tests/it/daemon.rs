//! A server in its own home, and the commands that talk to it.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Lines};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command};

use lastbyte_testkit::testchild;
use rustix::process::Signal;

use crate::harness::{
    Finished, Fixture, LASTBYTE, finish, kill_server, send, send_to_all, stand_in_of, start,
    worker_of,
};

/// `lastbyte serve` in the foreground; ended and waited for when dropped.
pub struct Daemon {
    pub fixture: Fixture,
    server: Child,
}

/// A home in which a start may leave a server; the server is ended when this is dropped.
pub struct Home {
    pub fixture: Fixture,
}

impl Daemon {
    pub fn start() -> Self {
        Self::listening(&[]).0
    }

    /// Starts it with these options.
    pub fn with(options: &[&str]) -> Self {
        Self::listening(options).0
    }

    /// Starts it by this program, which is given `lastbyte serve` after these arguments.
    pub fn started_by(program: &str, arguments: &[&str]) -> Self {
        let fixture = Fixture::new();
        let mut command = fixture.program(program);
        command.args(arguments).args([LASTBYTE.as_str(), "serve"]);
        let server = until_listening(&fixture, command).0;
        Self { fixture, server }
    }

    /// Starts it on a port as well; also returns the address.
    pub fn on_a_port() -> (Self, String) {
        let (daemon, mut lines) = Self::listening(&["--listen", "127.0.0.1:0"]);
        let line = lines.next().expect("a line for the port").unwrap();
        (daemon, line.strip_prefix("listening on ").expect("an address").to_owned())
    }

    /// Starts it in this home.
    pub fn in_home(fixture: Fixture) -> Self {
        let server = serve(&fixture, &[]).0;
        Self { fixture, server }
    }

    /// The process that was started: the keeper.
    pub fn pid(&self) -> u32 {
        self.server.id()
    }

    /// What it has said so far.
    pub fn log(&self) -> String {
        fs::read_to_string(log_of(&self.fixture)).unwrap()
    }

    /// The process that does the work.
    pub fn worker(&self) -> u32 {
        worker_of(&self.server)
    }

    pub fn stand_in(&self) -> Option<u32> {
        stand_in_of(&self.server)
    }

    /// Kills it without a chance to clean up.
    pub fn kill(&mut self) {
        kill_server(&mut self.server);
    }

    /// Suspends it until `resume`.
    pub fn stop(&self) {
        send_to_all(&self.server, Signal::STOP);
    }

    pub fn resume(&self) {
        send_to_all(&self.server, Signal::CONT);
    }

    /// Starts another server in the same home, after a kill.
    pub fn start_again(&mut self) {
        self.server = serve(&self.fixture, &[]).0;
    }

    /// The path of its socket.
    pub fn socket(&self) -> PathBuf {
        self.fixture.home.path().join("runtime/lastbyte/socket")
    }

    fn listening(options: &[&str]) -> (Self, Lines<BufReader<ChildStdout>>) {
        let fixture = Fixture::new();
        let (server, lines) = serve(&fixture, options);
        (Self { fixture, server }, lines)
    }

    /// Another command in the same home.
    pub fn lastbyte(&self, arguments: &[&str]) -> Command {
        self.fixture.lastbyte(arguments)
    }

    /// Runs the command to its end.
    pub fn finish(&self, arguments: &[&str]) -> Finished {
        finish(self.lastbyte(arguments))
    }

    /// What it prints; it must succeed and print nothing on standard error.
    #[track_caller]
    pub fn result(&self, arguments: &[&str]) -> String {
        let Finished { code, stdout, stderr } = self.finish(arguments);
        assert_eq!((code, stderr.as_str()), (Some(0), ""), "{arguments:?}");
        stdout
    }

    /// Starts a `testchild` with these actions; returns its id.
    #[track_caller]
    pub fn testchild(&self, options: &[&str], actions: &str) -> String {
        let testchild = testchild();
        let mut arguments = vec!["start"];
        arguments.extend(options);
        arguments.extend(["--", testchild.to_str().unwrap()]);
        arguments.extend(actions.split_whitespace());
        self.result(&arguments).trim_end().to_owned()
    }

    #[track_caller]
    pub fn check(&self, arguments: &[&str], code: i32, stdout: &str, stderr: &str) {
        let want = Finished { code: Some(code), stdout: stdout.into(), stderr: stderr.into() };
        assert_eq!(self.finish(arguments), want, "{arguments:?}");
    }
}

fn log_of(fixture: &Fixture) -> PathBuf {
    fixture.home.path().join("serve.log")
}

/// Starts a server in this home and waits until it listens; also returns the rest of its output.
fn serve(fixture: &Fixture, options: &[&str]) -> (Child, Lines<BufReader<ChildStdout>>) {
    let mut command = fixture.lastbyte(&["serve"]);
    command.args(options);
    until_listening(fixture, command)
}

fn until_listening(
    fixture: &Fixture,
    mut command: Command,
) -> (Child, Lines<BufReader<ChildStdout>>) {
    let log = File::options().append(true).create(true).open(log_of(fixture)).unwrap();
    command.stderr(log);
    let mut server = start(command);
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let listening = lines.any(|line| line.unwrap().contains("listening on unix:"));
    assert!(listening, "the server ended before it listened");
    (server, lines)
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if self.server.try_wait().unwrap().is_some() {
            return;
        }
        send(&self.server, Signal::TERM);
        // A failed test may have left it suspended.
        self.resume();
        self.server.wait().unwrap();
    }
}

impl Home {
    pub fn new() -> Self {
        Self { fixture: Fixture::new() }
    }

    pub fn finish(&self, arguments: &[&str]) -> Finished {
        finish(self.fixture.lastbyte(arguments))
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // There may be no server.
        _ = finish(self.fixture.lastbyte(&["shutdown"]));
    }
}
