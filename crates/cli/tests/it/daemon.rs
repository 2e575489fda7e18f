//! A server in a home of its own, and the commands that talk to it.

use std::io::{BufRead, BufReader, Lines};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use lastbyte_testkit::testchild;
use rustix::process::Signal;

use crate::harness::{Finished, Fixture, finish, send, start};

/// `lastbyte serve` in the foreground; ended and waited for when dropped.
pub struct Daemon {
    pub fixture: Fixture,
    server: Child,
}

/// A home in which the first start may leave a server, which is ended when this is dropped.
pub struct Home {
    pub fixture: Fixture,
}

impl Daemon {
    pub fn start() -> Self {
        Self::listening(&[]).0
    }

    /// With these options.
    pub fn with(options: &[&str]) -> Self {
        Self::listening(options).0
    }

    /// On a port too; where.
    pub fn on_a_port() -> (Self, String) {
        let (daemon, mut lines) = Self::listening(&["--listen", "127.0.0.1:0"]);
        let line = lines.next().expect("a line for the port").unwrap();
        (daemon, line.strip_prefix("listening on ").expect("an address").to_owned())
    }

    pub fn pid(&self) -> u32 {
        self.server.id()
    }

    /// Killed, without a chance to put anything in order.
    pub fn kill(&mut self) {
        self.server.kill().unwrap();
        self.server.wait().unwrap();
    }

    /// It does nothing, until it is to go on.
    pub fn stop(&self) {
        send(&self.server, Signal::STOP);
    }

    pub fn go_on(&self) {
        send(&self.server, Signal::CONT);
    }

    /// Another server in the home of the one that was killed.
    pub fn start_again(&mut self) {
        self.server = serve(&self.fixture, &[]).0;
    }

    /// Where it listens.
    pub fn socket(&self) -> PathBuf {
        self.fixture.home.path().join("runtime/lastbyte/socket")
    }

    fn listening(options: &[&str]) -> (Self, Lines<BufReader<ChildStdout>>) {
        let fixture = Fixture::new();
        let (server, lines) = serve(&fixture, options);
        (Self { fixture, server }, lines)
    }

    /// Some other command of the program.
    pub fn lastbyte(&self, arguments: &[&str]) -> Command {
        self.fixture.lastbyte(arguments)
    }

    /// What it comes to.
    pub fn finish(&self, arguments: &[&str]) -> Finished {
        finish(self.lastbyte(arguments))
    }

    /// What it prints, if it does so without a word and without a failure.
    #[track_caller]
    pub fn result(&self, arguments: &[&str]) -> String {
        let Finished { code, stdout, stderr } = self.finish(arguments);
        assert_eq!((code, stderr.as_str()), (Some(0), ""), "{arguments:?}");
        stdout
    }

    /// The id of a `testchild` that was started to do this.
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

/// A server in this home that listens, and what else it says.
fn serve(fixture: &Fixture, options: &[&str]) -> (Child, Lines<BufReader<ChildStdout>>) {
    let mut command = fixture.lastbyte(&["serve"]);
    command.args(options).stderr(Stdio::null());
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
        // One that a failed test has left stopped.
        self.go_on();
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
        // There may be none, and that it ends is what is wanted.
        _ = finish(self.fixture.lastbyte(&["shutdown"]));
    }
}
