//! Runs tests of user 0 again as the user `nobody`, for a server without privileges.
#![expect(clippy::disallowed_methods, reason = "a test harness around the test, not a command")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use lastbyte_testkit::testchild;

/// Runs the test of this name again as a user without privileges, and returns `false`; `true`
/// if the test has no privileges anyway. It is never skipped.
pub fn as_nobody(test: &str) -> bool {
    as_nobody_in(None, test)
}

/// The same, in this cgroup.
pub fn as_nobody_in(cgroup: Option<&Path>, test: &str) -> bool {
    if !rustix::process::geteuid().is_root() {
        return true;
    }
    // A copy that this user can execute.
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let copy = folder.path().join("it");
    fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    fs::copy(testchild(), folder.path().join("testchild")).unwrap();
    let status = Command::new("sh")
        .args(["-c", "test -z \"$CGROUP\" || echo $$ >\"$CGROUP/cgroup.procs\"; exec \"$@\"", "sh"])
        .env("CGROUP", cgroup.unwrap_or(Path::new("")))
        .arg("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        // A harmless capability, which must be dropped, too.
        .args(["--inh-caps", "+net_raw", "--ambient-caps", "+net_raw"])
        .arg(copy)
        .args([test, "--exact", "--nocapture"])
        .env_remove("TMPDIR")
        .env("HOME", "/")
        .current_dir("/")
        .status()
        .expect("setpriv is installed");
    assert!(status.success(), "{test} failed as nobody");
    false
}
