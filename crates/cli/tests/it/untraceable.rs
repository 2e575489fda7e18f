//! Other programs of the same user cannot look into a server, as far as docs/security.md says.

use lastbyte_engine::Enforcement;
use lastbyte_sys::spawn::Mechanism;
use lastbyte_testkit::not_run;
use serde_json::Value;

use crate::daemon::Daemon;
use crate::harness::finish;

/// Without the capabilities to trace or read everything, which root has.
const SETPRIV: [&str; 2] = ["setpriv", "--bounding-set=-sys_ptrace,-perfmon,-sys_admin"];

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// What another program of the same user is told when it reads this.
fn read_by_another(daemon: &Daemon, path: &str) -> String {
    let before = if is_root() { SETPRIV.join(" ") } else { String::new() };
    let script = format!("exec {before} head -c 1 {path}");
    finish(daemon.fixture.shell(&script)).stderr
}

#[test]
fn another_program_of_the_user_cannot_look_into_a_server() {
    let daemon =
        if is_root() { Daemon::started_by(SETPRIV[0], &SETPRIV[1..]) } else { Daemon::start() };
    let other = daemon.result(&["start", "--", "sleep", "600"]);
    let shown = daemon.result(&["show", "--json", other.trim()]);
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let refused = read_by_another(&daemon, &format!("/proc/{}/environ", shown["pid"]));
    daemon.result(&["stop", other.trim()]);
    if !refused.is_empty() {
        return not_run("no program can look into another one here");
    }
    let mut hidden = vec![daemon.pid(), daemon.stand_in().expect("it has a keeper")];
    // Root without these capabilities may have another enforcement than this test would find.
    if !is_root() && Enforcement::UserMounts.probe(Mechanism::Clone3).is_err() {
        hidden.push(daemon.worker());
    }
    for pid in hidden {
        for file in ["environ", "mem", "maps"] {
            let path = format!("/proc/{pid}/{file}");
            let said = read_by_another(&daemon, &path);
            assert!(said.contains("Permission denied"), "{path}: {said:?}");
        }
    }
}
