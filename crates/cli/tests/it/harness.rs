//! The program in its own home, with an anchor for the helpers it starts.
#![expect(clippy::disallowed_methods, reason = "the program is started as its users start it")]

use std::ffi::OsString;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;

use lastbyte_sys::procfs::read_stat;
use lastbyte_testkit::{Anchor, children_of, eventually, lastbyte, testchild};
use rustix::process::{Pid, Signal, kill_process};

/// The path of the program.
pub static LASTBYTE: LazyLock<String> =
    LazyLock::new(|| lastbyte().into_os_string().into_string().unwrap());

/// Ends its helpers and removes its files when dropped.
pub struct Fixture {
    pub anchor: Anchor,
    pub home: tempfile::TempDir,
}

/// How a program ended and what it wrote.
#[derive(Debug, PartialEq, Eq)]
pub struct Finished {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Fixture {
    pub fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("runtime")).unwrap();
        Self { anchor: Anchor::listen(), home }
    }

    /// Where the program keeps the folders of its runs.
    pub fn runs(&self) -> PathBuf {
        self.home.path().join("state/lastbyte/runs")
    }

    /// The names in that folder.
    pub fn folders(&self) -> Vec<OsString> {
        let entries = std::fs::read_dir(self.runs()).into_iter().flatten().flatten();
        let folders = entries.filter(|entry| entry.path().is_dir());
        folders.map(|entry| entry.file_name()).collect()
    }

    /// A program with an empty standard input, in its own home.
    pub fn program(&self, program: &str) -> Command {
        let (name, anchor) = self.anchor.env();
        let mut command = Command::new(program);
        command.env("HOME", self.home.path()).env("XDG_STATE_HOME", self.home.path().join("state"));
        command.env("XDG_CONFIG_HOME", self.home.path().join("config"));
        command.env("XDG_RUNTIME_DIR", self.home.path().join("runtime"));
        command.env("TZ", "UTC");
        command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
        command.env(name, anchor).env("LASTBYTE", &*LASTBYTE).env("TESTCHILD", testchild());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// The program with these arguments.
    pub fn lastbyte(&self, arguments: &[&str]) -> Command {
        let mut command = self.program(&LASTBYTE);
        command.args(arguments);
        command
    }

    /// `lastbyte run` with these arguments.
    pub fn run(&self, arguments: &[&str]) -> Command {
        let mut command = self.lastbyte(&["run"]);
        command.args(arguments);
        command
    }

    /// `lastbyte run` of a `testchild` with these actions.
    pub fn run_testchild(&self, actions: &str) -> Command {
        let mut command = self.run(&["--"]);
        command.arg(testchild()).args(actions.split_whitespace());
        command
    }

    /// A shell script that knows `$LASTBYTE` and `$TESTCHILD`.
    pub fn shell(&self, script: &str) -> Command {
        let mut command = self.program("sh");
        command.args(["-c", script]);
        command
    }
}

pub fn start(mut command: Command) -> Child {
    command.spawn().unwrap()
}

pub fn finish(mut command: Command) -> Finished {
    let output = command.output().unwrap();
    Finished {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Checks the result of `lastbyte run` with these arguments.
#[track_caller]
pub fn check(arguments: &[&str], code: i32, stdout: &str, stderr: &str) {
    let finished = finish(Fixture::new().run(arguments));
    let want = Finished { code: Some(code), stdout: stdout.into(), stderr: stderr.into() };
    assert_eq!(finished, want, "{arguments:?}");
}

/// Reads exactly this text.
#[track_caller]
pub fn expect(from: &mut impl Read, text: &str) {
    let mut read = vec![0; text.len()];
    from.read_exact(&mut read).unwrap();
    assert_eq!(String::from_utf8_lossy(&read), text);
}

pub fn send(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

/// The worker and the holder of a server, if it has them.
fn others_of(server: &Child) -> Vec<(String, u32)> {
    let named = |pid: u32| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        name.starts_with("lastbyte").then(|| (name.trim_end().to_owned(), pid))
    };
    children_of(server.id()).into_iter().filter_map(named).collect()
}

/// The process of a server that does the work.
pub fn worker_of(server: &Child) -> u32 {
    let worker = others_of(server).into_iter().find(|(name, _)| name == "lastbyte");
    worker.map_or(server.id(), |(_, pid)| pid)
}

/// The process of a server that holds its descriptors, if it has one.
pub fn stand_in_of(server: &Child) -> Option<u32> {
    let stand_in = others_of(server).into_iter().find(|(name, _)| name == "lastbyte-stand");
    stand_in.map(|(_, pid)| pid)
}

/// Signals all processes of a server, the keeper first.
pub fn send_to_all(server: &Child, signal: Signal) {
    let others = others_of(server);
    send(server, signal);
    for (_, pid) in others {
        // It may have ended by itself.
        _ = kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal);
    }
}

/// Kills all processes of a server without a chance to clean up.
pub fn kill_server(server: &mut Child) {
    let others = others_of(server);
    if server.try_wait().unwrap().is_none() {
        send_to_all(server, Signal::KILL);
    }
    server.wait().unwrap();
    // A worker whose first thread is a zombie still has the lock until the others are gone.
    let is_left = |pid: u32| read_stat(pid.cast_signed()).is_ok_and(|stat| stat.alive());
    eventually("nothing of it is left", || !others.iter().any(|(_, pid)| is_left(*pid)));
}

/// How many sockets a process has open.
#[track_caller]
pub fn sockets_of(pid: u32) -> usize {
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    let targets = open.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    targets.filter(|target| target.to_string_lossy().starts_with("socket:")).count()
}
