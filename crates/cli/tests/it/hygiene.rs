use lastbyte_testkit::SignalSets;
use serde_json::{Value, json};

use crate::harness::{Fixture, finish};

/// The output of a command whose parent ignores and blocks signals and leaks a descriptor.
fn output_of(command: &str) -> String {
    let script = format!(
        r#"exec env --ignore-signal=INT,HUP,PIPE,USR2,CHLD,RTMIN,RTMAX --block-signal=TERM sh -c 'exec 9</dev/null; exec "$LASTBYTE" run -- {command}'"#
    );
    let finished = finish(Fixture::new().shell(&script));
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""));
    finished.stdout
}

#[test]
fn a_command_inherits_nothing_it_was_not_given() {
    let report: Value = serde_json::from_str(&output_of(r#""$TESTCHILD" report"#)).unwrap();
    assert_eq!(report["not_default"], json!([]));
    assert_eq!(report["blocked"], json!([]));
    assert_eq!(report["fds"], json!([0, 1, 2]));
    assert_eq!(report["has_ctty"], json!(false));
    assert_eq!((&report["pgid"], &report["sid"]), (&report["pid"], &report["pid"]));
}

#[test]
fn a_command_inherits_no_ignored_or_blocked_signals() {
    let status = output_of("cat /proc/self/status");
    assert!(status.contains("SigIgn:"), "{status}");
    assert_eq!(SignalSets::from_status(&status), SignalSets::default());
}
