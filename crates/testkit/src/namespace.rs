//! Runs tests again in namespaces of their own.
#![expect(clippy::disallowed_methods, reason = "a harness around the test, not a command")]

use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use crate::not_run;

const INSIDE: &str = "LASTBYTE_TEST_INSIDE";

/// Runs the test of this name again under `unshare` with these flags and returns `false`; returns
/// `true` in that second run. If namespaces are not permitted, reports that the test is not run.
pub fn inside(test: &str, flags: &[&str]) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    if !can_unshare(flags) {
        return false;
    }
    let status = unshare(flags)
        .arg(std::env::current_exe().expect("a test has an executable"))
        .args([test, "--exact", "--nocapture"])
        .env(INSIDE, "1")
        .status()
        .expect("unshare is installed");
    assert!(status.success(), "{test} failed in its namespace");
    false
}

/// Whether this user can create mount namespaces, which some policies need. If not, reports that
/// the test is not run.
pub fn has_mount_namespaces() -> bool {
    can_unshare(&["--mount"])
}

fn can_unshare(flags: &[&str]) -> bool {
    let trial = unshare(flags).arg("true").output().expect("unshare is installed");
    if !trial.status.success() {
        let why = String::from_utf8_lossy(&trial.stderr);
        not_run(&format!("namespaces are not permitted here ({})", why.trim()));
    }
    trial.status.success()
}

fn unshare(flags: &[&str]) -> Command {
    let mut unshare = Command::new("unshare");
    if !is_root() {
        unshare.args(["--user", "--map-root-user"]);
    }
    unshare.args(flags);
    unshare
}

/// A process with a chosen pid and a process group of its own. Needs a pid namespace used by
/// nothing else.
#[derive(Debug)]
pub struct Reused(Child);

impl Reused {
    /// Makes the kernel assign this pid next; retries if a thread that starts meanwhile takes it.
    pub fn pid(pid: i32) -> Self {
        for _ in 0..50 {
            std::fs::write("/proc/sys/kernel/ns_last_pid", (pid - 1).to_string())
                .expect("root in its own pid namespace may set it");
            let mut sleep = Command::new("sleep");
            let child = sleep.arg("60").process_group(0).spawn();
            let mut child = child.expect("sleep is installed");
            if child.id() == pid.unsigned_abs() {
                return Self(child);
            }
            end(&mut child);
        }
        panic!("pid {pid} was never assigned again");
    }

    pub fn is_alive(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(None))
    }
}

impl Drop for Reused {
    fn drop(&mut self) {
        end(&mut self.0);
    }
}

/// Errors do not matter: the child may have ended already.
fn end(child: &mut Child) {
    _ = child.kill();
    _ = child.wait();
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}
