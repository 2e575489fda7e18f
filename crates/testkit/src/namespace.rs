//! Tests that need a machine of their own run again in namespaces of theirs.
#![expect(clippy::disallowed_methods, reason = "a test harness around the test, not a command")]

use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

const INSIDE: &str = "LASTBYTE_TEST_INSIDE";

/// Runs the test of this name again under `unshare` with these flags, and returns `false`; `true`
/// when this is that run. Where namespaces are refused the test fails: it is never skipped.
pub fn inside(test: &str, flags: &[&str]) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let mut unshare = Command::new("unshare");
    if !is_root() {
        unshare.args(["--user", "--map-root-user"]);
    }
    let status = unshare
        .args(flags)
        .arg(std::env::current_exe().expect("a test knows its program"))
        .args([test, "--exact", "--nocapture"])
        .env(INSIDE, "1")
        .status()
        .expect("unshare is installed");
    assert!(status.success(), "{test} failed in its namespace, or namespaces are refused here");
    false
}

/// A process with this pid, and a group of its own with the same number, in a namespace that has to
/// be ours alone.
#[derive(Debug)]
pub struct Reused(Child);

impl Reused {
    /// Makes the kernel give out this number next; a thread that starts meanwhile may take it.
    pub fn pid(pid: i32) -> Self {
        for _ in 0..50 {
            std::fs::write("/proc/sys/kernel/ns_last_pid", (pid - 1).to_string())
                .expect("the namespace is ours");
            let mut sleep = Command::new("sleep");
            let child = sleep.arg("60").process_group(0).spawn();
            let mut child = child.expect("sleep is installed");
            if child.id() == pid.unsigned_abs() {
                return Self(child);
            }
            end(&mut child);
        }
        panic!("the number {pid} was never given out again");
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

/// One that has ended already is only taken note of.
fn end(child: &mut Child) {
    _ = child.kill();
    _ = child.wait();
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}
