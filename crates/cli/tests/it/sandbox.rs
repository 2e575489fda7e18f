//! Policies on the command line.

use serde_json::Value;

use crate::daemon::Daemon;
use crate::harness::check;

#[test]
fn what_is_said_of_no_sandbox_is_refused_with_what_to_do() {
    let of_a_workspace = |option| {
        format!(
            "lastbyte: {option} says more about a workspace, so it is for --sandbox \
             workspace-write alone; add that\n"
        )
    };
    check(&["--writable", "x", "true"], 2, "", &of_a_workspace("--writable"));
    let read_only = ["--sandbox", "read-only", "--protect", "x", "true"];
    check(&read_only, 2, "", &of_a_workspace("--protect"));
    let network = "lastbyte: --network gives a sandboxed command the network, so it is for --sandbox \
                   read-only or workspace-write; without a sandbox a command has it anyway\n";
    check(&["--network", "true"], 2, "", network);
    check(&["--network", "--sandbox", "external", "true"], 2, "", network);
}

#[test]
fn an_external_sandbox_is_none_and_that_is_said() {
    let said = "lastbyte: the sandbox is external: nothing is kept from the command here\n";
    check(&["--sandbox", "external", "echo ran"], 0, "ran\n", said);
    check(&["--sandbox", "full-access", "echo ran"], 0, "ran\n", "");
    let daemon = Daemon::start();
    let started = daemon.finish(&["start", "--sandbox", "external", "true"]);
    assert_eq!((started.code, started.stderr.as_str()), (Some(0), said));
    let shown = daemon.result(&["show", started.stdout.trim()]);
    assert!(shown.contains("sandbox    none: left to an external one\n"), "{shown}");
    assert!(daemon.result(&["ps"]).contains("  external  "));
}

#[test]
fn a_process_shows_that_it_has_no_sandbox() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&[], "exit 0");
    let shown: Value = serde_json::from_str(&daemon.result(&["show", &id, "--json"])).unwrap();
    assert_eq!(shown["sandbox"], serde_json::json!({"kind": "full_access"}));
    assert!(daemon.result(&["show", &id]).contains("sandbox    none: full access\n"));
}
