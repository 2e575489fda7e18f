//! Upgrades of a running server, good ones and others.

use std::path::{Path, PathBuf};

use lastbyte_testkit::eventually;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::daemon::Daemon;
use crate::harness::{Finished, Fixture, LASTBYTE, finish};

/// An executable copy. Written by another program: one that this program has open for writing
/// could be open in a child of another test as well, and then it cannot be executed.
fn install(fixture: &Fixture, from: impl AsRef<Path>, name: &str) -> PathBuf {
    let path = fixture.home.path().join(name);
    let mut command = fixture.program("install");
    command.args(["-m", "755"]).arg(from.as_ref()).arg(&path);
    assert_eq!(finish(command).code, Some(0));
    path
}

fn script(fixture: &Fixture, name: &str, text: &str) -> PathBuf {
    let source = fixture.home.path().join(format!("{name}.txt"));
    std::fs::write(&source, format!("#!/bin/sh\n{text}\n")).unwrap();
    install(fixture, source, name)
}

fn upgrade(daemon: &Daemon, binary: &Path) -> Finished {
    daemon.finish(&["upgrade", "--binary", binary.to_str().unwrap()])
}

/// A command that counts until it is told to stop.
struct Counting {
    id: String,
    stop: PathBuf,
}

impl Counting {
    fn start(daemon: &Daemon) -> Self {
        let stop = daemon.fixture.home.path().join("stop");
        let script = format!(
            "i=0; while [ ! -e '{}' ]; do i=$((i+1)); echo $i; sleep 0.001; done; exit 7",
            stop.display()
        );
        let id = daemon.result(&["start", &script]).trim_end().to_owned();
        let own = Self { id, stop };
        own.until_it_counts_on(daemon);
        own
    }

    fn until_it_counts_on(&self, daemon: &Daemon) {
        let output = || daemon.result(&["logs", &self.id]);
        let before = output().len();
        eventually("it prints more", || output().len() > before);
    }

    /// Nothing that it printed is missing, and its exit code is its own.
    fn check(self, daemon: &Daemon) {
        self.until_it_counts_on(daemon);
        std::fs::write(&self.stop, "").unwrap();
        assert_eq!(daemon.finish(&["wait", &self.id]).code, Some(7));
        let printed = daemon.result(&["logs", &self.id]);
        let count = printed.lines().count();
        let want: String = (1..=count).map(|line| format!("{line}\n")).collect();
        assert!(printed == want, "{count} lines\n{printed}");
    }
}

fn keeper(daemon: &Daemon) -> Value {
    let report: Value = serde_json::from_str(&daemon.finish(&["doctor", "--json"]).stdout).unwrap();
    report["server"]["keeper"].clone()
}

#[test]
fn commands_go_on_through_an_upgrade() {
    let daemon = Daemon::start();
    let counting = Counting::start(&daemon);
    let before = daemon.worker();
    let other = install(&daemon.fixture, &*LASTBYTE, "other");
    let finished = upgrade(&daemon, &other);
    let after = daemon.worker();
    assert_ne!(before, after);
    let version = env!("CARGO_PKG_VERSION");
    let want = format!("upgraded from {version} to {version} (worker pid {after})\n");
    let want = Finished { code: Some(0), stdout: want, stderr: String::new() };
    assert_eq!(finished, want);
    let executes = |pid: u32| std::fs::read_link(format!("/proc/{pid}/exe")).unwrap();
    assert_eq!(executes(after), other);
    let told = keeper(&daemon);
    assert_eq!((&told["restarts"], &told["last_crash"]), (&0.into(), &Value::Null));
    // The upgraded program stays, whatever happens to its file.
    std::fs::remove_file(&other).unwrap();
    kill_process(Pid::from_raw(after.cast_signed()).unwrap(), Signal::KILL).unwrap();
    eventually("another worker serves", || keeper(&daemon)["restarts"] == 1);
    assert!(executes(daemon.worker()).starts_with(daemon.fixture.home.path()));
    let again = daemon.finish(&["upgrade", "--json"]);
    let again: Value = serde_json::from_str(&again.stdout).unwrap_or_else(|_| panic!("{again:?}"));
    assert_eq!(again["worker_pid"], daemon.worker());
    assert_eq!(executes(daemon.worker()), std::fs::canonicalize(&*LASTBYTE).unwrap());
    counting.check(&daemon);
}

#[test]
fn a_program_that_cannot_take_over_is_refused() {
    let daemon = Daemon::start();
    let before = daemon.worker();
    let write = |name: &str, text: &str| script(&daemon.fixture, name, text);
    let missing = daemon.fixture.home.path().join("missing");
    for (binary, want) in [
        (missing, "cannot execute PATH: No such file or directory"),
        ("/dev/null".into(), "cannot execute PATH: Permission denied"),
        (write("silent", ""), "cannot upgrade to PATH: not a lastbyte program\n"),
        (write("chatty", "echo lastbyte 1"), "cannot upgrade to PATH: not a lastbyte program\n"),
        (
            write("failing", "exit 2"),
            "cannot upgrade to PATH: not a lastbyte that can take over (worker-version: exit status: 2)\n",
        ),
        (
            write("crashing", "kill -SEGV $$"),
            "cannot upgrade to PATH: not a lastbyte that can take over (worker-version: signal: 11",
        ),
        (
            write("older", "echo lastbyte 0.0.1 keeper 0 registry 9"),
            "cannot upgrade to PATH: version 0.0.1 cannot take over what",
        ),
        (
            write("hanging", "exec sleep 1000"),
            "cannot upgrade to PATH: `worker-version` took longer than 5s\n",
        ),
    ] {
        let want = format!("lastbyte: {}", want.replace("PATH", binary.to_str().unwrap()));
        let finished = upgrade(&daemon, &binary);
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(125), ""), "{finished:?}");
        assert!(finished.stderr.starts_with(&want), "{finished:?}");
    }
    assert_eq!(daemon.worker(), before);
}

#[test]
fn a_program_that_fails_as_a_worker_is_replaced_by_the_one_from_before() {
    let daemon = Daemon::start();
    let counting = Counting::start(&daemon);
    let trial = "if [ \"$1\" = worker-version ]; then exec \"$LASTBYTE\" worker-version; fi";
    for (restarts, text, how) in [
        (1, format!("{trial}; exit 9"), "exited with code 9"),
        (2, format!("{trial}; kill -KILL $$"), "was killed by SIGKILL"),
        (3, format!("rm \"$0\"; {trial}"), "exited with code 126"),
    ] {
        let before = daemon.worker();
        let finished = upgrade(&daemon, &script(&daemon.fixture, "broken", &text));
        let want = format!(
            "lastbyte: the upgrade failed: the worker {how} before it was ready, so the upgrade was undone\n"
        );
        let want = Finished { code: Some(125), stdout: String::new(), stderr: want };
        assert_eq!(finished, want);
        assert_ne!(daemon.worker(), before);
        assert_eq!(keeper(&daemon)["restarts"], restarts);
    }
    counting.check(&daemon);
}

#[test]
fn without_a_keeper_an_upgrade_is_refused() {
    let daemon = Daemon::with(&["--no-keeper"]);
    daemon.check(
        &["upgrade"],
        125,
        "",
        "lastbyte: the server has no keeper, so nothing would outlive the upgrade; stop the server \
         with `lastbyte shutdown` and start the other program\n",
    );
}
