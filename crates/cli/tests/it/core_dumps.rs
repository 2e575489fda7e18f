//! The server dumps no core; its commands may, as far as its user lets them.

use std::fs;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::daemon::Daemon;
use crate::harness::{Fixture, finish};

/// The soft limit of core dumps of a process, as its kernel shows it.
fn limit_of(pid: u32) -> String {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max core file size"));
    line.unwrap().split_whitespace().next().unwrap().to_owned()
}

#[test]
fn no_process_of_a_server_dumps_core() {
    // Not all users have a soft limit that permits core dumps; this test has its process to itself.
    let limit = getrlimit(Resource::Core);
    setrlimit(Resource::Core, Rlimit { current: limit.maximum, ..limit }).unwrap();
    let server = Daemon::start();
    let stand_in = server.stand_in().expect("it has a keeper");
    // With 1, also where dumps are piped to a program, which 0 does not prevent.
    let none = if limit.maximum == Some(0) { "0" } else { "1" };
    for pid in [server.pid(), server.worker(), stand_in] {
        assert_eq!(limit_of(pid), none);
    }
}

#[test]
fn a_command_has_the_limit_that_lastbyte_was_started_with() {
    let fixture = Fixture::new();
    let read = r#"exec awk "/core file/ { print \$5 }" /proc/self/limits"#;
    let background = r#""$LASTBYTE" start "$COMMAND" >/dev/null && "$LASTBYTE" logs -f last"#;
    for (limit, way) in [
        ("8", r#""$LASTBYTE" run "$COMMAND""#),
        ("0", r#""$LASTBYTE" run "$COMMAND""#),
        ("8", background),
    ] {
        let script = format!("ulimit -Sc {limit} && {way}");
        let mut command = fixture.shell(&script);
        command.env("COMMAND", read);
        let finished = finish(command);
        let bytes = limit.parse::<u64>().unwrap() * 512;
        assert_eq!(finished.stdout.trim(), bytes.to_string(), "{way}: {finished:?}");
    }
    finish(fixture.lastbyte(&["shutdown"]));
}
