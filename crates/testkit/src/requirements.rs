//! What a test needs of the machine and the user. A test that cannot run says so, so that nothing
//! is skipped silently.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Names the file that collects the tests not run, because the runner hides what a passing test
/// prints.
const NOT_RUN_FILE: &str = "LASTBYTE_TEST_NOT_RUN";

/// Descriptors open for other reasons: those of the runner, the runtime and the engine itself.
const OTHER_DESCRIPTORS: u64 = 100;

/// Reports that the running test, or the part of it that `why` names, is not run.
///
/// Panics if the line cannot be written to the file that `./test` reads.
#[expect(clippy::print_stderr, reason = "for a person who runs one test by hand")]
pub fn not_run(why: &str) {
    let line = format!("not run: {}: {why}\n", running_test());
    eprint!("{line}");
    if let Some(path) = std::env::var_os(NOT_RUN_FILE) {
        let file = OpenOptions::new().append(true).open(&path);
        // One write, so that the lines of concurrent tests do not mix.
        let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
        written.unwrap_or_else(|error| panic!("cannot append to {}: {error}", path.display()));
    }
}

/// The name that nextest sets; without nextest, the thread is named after the test.
fn running_test() -> String {
    let variable = |name: &str| std::env::var(name).ok();
    match variable("NEXTEST_BINARY_ID").zip(variable("NEXTEST_TEST_NAME")) {
        Some((binary, test)) => format!("{binary} {test}"),
        None => std::thread::current().name().unwrap_or("a test").to_owned(),
    }
}

/// Whether this user can create a cgroup below the current one, checked without the code under
/// test. If not, reports that `what` is not run.
pub fn has_cgroups(what: &str) -> bool {
    let made = own_cgroup().and_then(|folder| {
        let probe = folder.join(format!("testkit-{}", std::process::id()));
        fs::create_dir(&probe)?;
        fs::remove_dir(&probe)
    });
    if let Err(error) = &made {
        not_run(&format!("{what}: this user cannot create a cgroup ({error})"));
    }
    made.is_ok()
}

/// The folder of this process's cgroup v2.
fn own_cgroup() -> io::Result<PathBuf> {
    let none = || io::Error::other("no cgroup v2");
    let own = fs::read_to_string("/proc/self/cgroup")?;
    let own = own.lines().find_map(|line| line.strip_prefix("0::")).ok_or_else(none)?;
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let mount = mounts.lines().find(|line| line.contains(" - cgroup2 ")).ok_or_else(none)?;
    // `ID PARENT DEVICE ROOT POINT …`: the mount shows the hierarchy below ROOT.
    let mut fields = mount.split(' ').skip(3);
    let (root, point) = fields.next().zip(fields.next()).ok_or_else(none)?;
    let below = Path::new(own).strip_prefix(root).map_err(io::Error::other)?;
    Ok(Path::new(point).join(below))
}

/// `wanted`, or fewer if there are not enough descriptors for `each` times as many. Raises the
/// descriptor limit as far as this user may, and reports if fewer are returned.
pub fn as_many_as(wanted: u64, each: u64) -> u64 {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })
        .expect("any user may raise the soft limit to the hard limit");
    let max = limit.maximum.unwrap_or(u64::MAX);
    let possible = wanted.min(max.saturating_sub(OTHER_DESCRIPTORS) / each);
    if possible < wanted {
        not_run(&format!(
            "{wanted} at once, only {possible}: this user may open {max} descriptors"
        ));
    }
    possible
}

/// A TCP port that nothing listens on, for servers that take a port number.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("some port is free");
    listener.local_addr().expect("a listener has an address").port()
}
