//! `lastbyte show --receipt`.

use serde_json::Value;

use crate::daemon::Daemon;
use crate::harness::{Finished, finish};

/// What `sha256sum` says of the raw output.
fn sha256sum(daemon: &Daemon, id: &str) -> String {
    let url = format!("http://localhost/v1/processes/{id}/output?max_bytes=1000000");
    let curl = format!("curl -sS --unix-socket \"$SOCKET\" \"{url}\" | sha256sum");
    let mut shell = daemon.fixture.shell(&curl);
    shell.env("SOCKET", daemon.socket());
    let Finished { code, stdout, stderr } = finish(shell);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    stdout.split(' ').next().unwrap().to_owned()
}

fn ended(daemon: &Daemon, options: &[&str], actions: &str) -> String {
    let id = daemon.testchild(options, actions);
    daemon.result(&["wait", &id]);
    id
}

/// The row with this name.
fn row(page: &str, name: &str) -> String {
    let row = page.lines().find_map(|line| line.strip_prefix(&format!("{name:10} ")));
    row.unwrap_or_else(|| panic!("no {name} in\n{page}")).to_owned()
}

#[test]
fn the_hash_is_that_of_sha256sum_also_after_a_restart() {
    let mut daemon = Daemon::start();
    let split = "write-bytes 5000 then write-bytes 700 err then write-bytes 5000";
    let known = [
        (ended(&daemon, &[], "exit 0"), 0),
        (ended(&daemon, &[], "print few"), 3),
        (ended(&daemon, &[], "write-bytes 300000"), 300_000),
        (ended(&daemon, &["--split"], split), 10_700),
    ];
    let check = |daemon: &Daemon| {
        for (id, bytes) in &known {
            let page = daemon.result(&["show", "--receipt", id]);
            assert_eq!(row(&page, "output"), format!("{bytes} bytes"));
            assert_eq!(row(&page, "sha256"), sha256sum(daemon, id), "{bytes} bytes");
        }
    };
    check(&daemon);
    daemon.kill();
    daemon.start_again();
    check(&daemon);
}

#[test]
fn a_receipt_has_the_terms_and_no_value_of_a_variable_also_after_a_restart() {
    let mut daemon = Daemon::start();
    let value = "SECRET=a-distinctive-value";
    let options = [
        ["--env", value],
        ["--timeout", "5m"],
        ["--quota", "1MiB"],
        ["--name", "web"],
        ["--key", "k"],
        ["--session", "s"],
        ["--label", "a=b"],
        ["--sandbox", "read-only"],
    ];
    let id = daemon.testchild(&options.concat(), "print x then exit 0");
    daemon.result(&["wait", &id]);
    let doctor: Value = serde_json::from_str(&daemon.finish(&["doctor", "--json"]).stdout).unwrap();
    let by = match doctor["sandboxes_by"].as_str().unwrap() {
        "mounts" => "mounts",
        "user_mounts" => "mounts in a user namespace",
        _ => "Landlock alone",
    };
    let sandbox = format!("read-only, no network; enforced by {by}");
    for restart in [false, true] {
        if restart {
            daemon.kill();
            daemon.start_again();
        }
        let page = daemon.result(&["show", "--receipt", &id]);
        for (name, want) in [
            ("id", id.as_str()),
            ("name", "web"),
            ("session", "s"),
            ("key", "k"),
            ("label", "a=b"),
            ("sandbox", &sandbox),
            ("stop", "TERM, KILL after 5s"),
            ("timeout", "5m, then stopped"),
            ("idle", "none"),
            ("quota", "1.0 MiB"),
            ("ending", "exit 0"),
            ("output", "1 byte"),
        ] {
            assert_eq!(row(&page, name), want, "{name} {page}");
        }
        // A start from the command line passes on all variables of its caller.
        assert!(row(&page, "variables").split(", ").any(|name| name == "SECRET"), "{page}");
        for name in ["command", "directory", "started", "exited", "ended"] {
            assert!(!row(&page, name).is_empty(), "{page}");
        }
        let json = daemon.result(&["show", "--receipt", "--json", &id]);
        let receipt: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(receipt["output_hash"]["hex"], row(&page, "sha256"));
        assert!(!format!("{page}{json}").contains("distinctive"), "{page}{json}");
    }
}

#[test]
fn a_receipt_without_a_hash_says_why() {
    let mut daemon = Daemon::start();
    let dropped = ended(&daemon, &["--quota", "128KiB"], "write-bytes 1000000");
    let running = daemon.testchild(&[], "print x then hold");
    daemon.result(&["wait", &running, "--output-past", "0"]);
    let sha256 =
        |daemon: &Daemon, id: &str| row(&daemon.result(&["show", "--receipt", id]), "sha256");
    let ranges = row(&daemon.result(&["show", &dropped]), "dropped");
    let want = format!("none: these bytes of the output were dropped: {ranges}");
    assert_eq!(sha256(&daemon, &dropped), want);
    assert_eq!(sha256(&daemon, &running), "none: the process has not ended");
    daemon.kill();
    daemon.start_again();
    assert_eq!(sha256(&daemon, &dropped), want);
    let lost = "none: nobody saw the end, so there may have been more output";
    assert_eq!(sha256(&daemon, &running), lost);
}
