//! Secrets reach the command's environment and nothing else.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use lastbyte_testkit::eventually;

use crate::daemon::Daemon;
use crate::harness::{Finished, Fixture, finish, start};
use crate::take_over::{ending, kill_worker};

const VALUE: &str = "correct-horse-battery";

fn with_token(mut command: Command, value: &str) -> Finished {
    command.env("TOKEN", value);
    finish(command)
}

fn started(daemon: &Daemon, arguments: &[&str]) -> String {
    let start = daemon.lastbyte(&[&["start"], arguments].concat());
    let Finished { code, stdout, stderr } = with_token(start, VALUE);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    stdout.trim().to_owned()
}

#[test]
fn run_masks_both_streams() {
    let fixture = Fixture::new();
    let script = "echo out $TOKEN; echo err $TOKEN >&2; test ${#TOKEN} = 21";
    let run = fixture.run(&["--secret", "TOKEN", script]);
    let Finished { code, stdout, stderr } = with_token(run, VALUE);
    assert_eq!(code, Some(0));
    assert_eq!((stdout.as_str(), stderr.as_str()), ("out ***TOKEN***\n", "err ***TOKEN***\n"));
}

#[test]
fn a_secret_is_read_from_a_file_without_its_line_end() {
    let fixture = Fixture::new();
    let file = fixture.home.path().join("token");
    for content in [VALUE.to_owned(), format!("{VALUE}\n"), format!("{VALUE}\r\n")] {
        fs::write(&file, content).unwrap();
        let option = format!("TOKEN=@{}", file.display());
        let script = "echo \"<$TOKEN>\"; test ${#TOKEN} = 21";
        let finished = finish(fixture.run(&["--secret", &option, script]));
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(0), "<***TOKEN***>\n"));
    }
}

#[test]
fn what_cannot_be_a_secret_is_refused_without_its_value() {
    let fixture = Fixture::new();
    for (option, value, want) in [
        ("TOKEN=plain-text", VALUE, "a value must not be an argument"),
        ("MISSING", VALUE, "--secret MISSING: there is no such environment variable here"),
        ("TOKEN", "abc", "the secret TOKEN is shorter than 4 characters"),
        ("TO-KEN=@/dev/null", VALUE, "the name of a secret must be"),
        ("TOKEN=@/nowhere", VALUE, "--secret TOKEN: cannot read file /nowhere"),
    ] {
        let run = fixture.run(&["--secret", option, "true"]);
        let Finished { code, stderr, .. } = with_token(run, value);
        assert_ne!(code, Some(0));
        assert!(stderr.contains(want), "{stderr}");
        assert!(!stderr.contains("plain-text"), "{stderr}");
    }
    let run = fixture.run(&["--secret", "TOKEN", "--env", "TOKEN=x", "true"]);
    let stderr = with_token(run, VALUE).stderr;
    assert!(stderr.contains("the variable TOKEN is given more than once"), "{stderr}");
}

fn holds(folder: &Path, value: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() {
            found.extend(holds(&path, value));
        } else if kind.is_file() {
            let bytes = fs::read(&path).unwrap();
            if bytes.windows(value.len()).any(|part| part == value.as_bytes()) {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

#[test]
fn the_value_is_nowhere_but_in_the_command() {
    let daemon = Daemon::start();
    let home = daemon.fixture.home.path();
    let seen = tempfile::NamedTempFile::new().unwrap();
    let events = || fs::read_to_string(seen.path()).unwrap();
    let mut follow = daemon.lastbyte(&["events", "--json"]);
    follow.stdout(Stdio::from(seen.reopen().unwrap()));
    let mut follow = start(follow);
    eventually("an event", || {
        daemon.result(&["start", "true"]);
        !events().is_empty()
    });
    let script = "echo \"$TOKEN\" | tee /dev/stderr; seq 3000; echo end $TOKEN";
    let options = ["--secret", "TOKEN", "--key", "k", "--name", "secretive"];
    let long = started(&daemon, &[&options[..], &["--split", script]].concat());
    daemon.result(&["wait", &long]);
    let short = started(&daemon, &["--secret", "TOKEN", "echo $TOKEN"]);
    daemon.result(&["wait", &short]);
    assert_eq!(daemon.result(&["logs", &short]), "***TOKEN***\n");
    assert_eq!(ending(&daemon, &long)["masked"], 3);
    assert_eq!(holds(home, "***TOKEN***").len(), 2, "one in its log, one in the journal");
    assert_eq!(holds(home, VALUE), Vec::<String>::new());
    for arguments in [
        &["ps", "--all", "--json"][..],
        &["show", "--json", &long],
        &["show", "--receipt", &long],
        &["logs", &long],
        &["search", &long, "end"],
        &["doctor"],
    ] {
        let Finished { stdout, stderr, .. } = daemon.finish(arguments);
        assert!(!stdout.contains(VALUE) && !stderr.contains(VALUE), "{arguments:?}: {stdout}");
    }
    eventually("its ending", || events().contains("\"masked\":3"));
    assert!(!events().contains(VALUE));
    follow.kill().unwrap();
    follow.wait().unwrap();
    let receipt = daemon.result(&["show", "--receipt", &long]);
    assert!(receipt.contains("TOKEN"), "{receipt}");
    assert!(receipt.contains("3 secrets"), "{receipt}");
    let other = daemon.lastbyte(&[&["start"], &options[..], &["--split", script]].concat());
    let stderr = with_token(other, &format!("{VALUE}-2")).stderr;
    assert!(stderr.contains("differs in its secrets"), "{stderr}");
    assert!(!stderr.contains(VALUE) && !daemon.log().contains(VALUE), "{stderr}");
}

/// A command on a terminal prints the secret again and again, in pieces and in colours, while its worker
/// is killed.
#[test]
fn a_kill_of_the_worker_neither_loses_nor_unmasks_anything() {
    let daemon = Daemon::start();
    let script = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); echo \"$i $TOKEN.\"; \
                  printf '%s' correct-; printf '\\033[31m%s\\n' horse-battery; done; \
                  printf correct-horse";
    let line = |number| format!("{number} ***TOKEN***.\n***TOKEN***\n");
    let want: String = (1..=20_000).map(line).collect::<String>() + "correct-horse";
    for options in [&["--split"][..], &["--tty", "24x80"]] {
        let id = started(&daemon, &[&["--secret", "TOKEN"], options, &[script]].concat());
        for kill in 0..3 {
            let before = daemon.result(&["logs", &id]).len();
            let grown = || daemon.result(&["logs", &id]).len() > before;
            eventually("more output", || grown() || !ending(&daemon, &id).is_null());
            assert!(kill > 0 || ending(&daemon, &id).is_null(), "it has ended before it is killed");
            kill_worker(&daemon);
        }
        assert_eq!(daemon.finish(&["wait", &id]).code, Some(0));
        let raw = daemon.result(&["logs", &id]).replace('\r', "");
        assert!(raw == want, "{} bytes instead of {}", raw.len(), want.len());
        let ending = ending(&daemon, &id);
        assert_eq!(ending["masked"], 40_000, "{ending}");
        assert_eq!(ending["kept"]["kind"], "whole");
    }
}

/// What the last worker held back is in memory that outlives it.
#[test]
fn a_secret_that_a_kill_cuts_in_two_is_masked() {
    let daemon = Daemon::start();
    let options = ["--secret", "TOKEN", "--stdin-open", "--", "cat"];
    let id = started(&daemon, &options);
    daemon.result(&["write", &id, "say correct-ho"]);
    eventually("the first bytes", || daemon.result(&["logs", &id]) == "say ");
    kill_worker(&daemon);
    assert_eq!(daemon.result(&["logs", &id]), "say ");
    daemon.result(&["write", &id, "rse-battery, then correct-"]);
    eventually("the rest", || daemon.result(&["logs", &id]) == "say ***TOKEN***, then ");
    kill_worker(&daemon);
    daemon.result(&["write", &id, "--close"]);
    daemon.result(&["wait", &id]);
    assert_eq!(daemon.result(&["logs", &id]), "say ***TOKEN***, then correct-");
    assert_eq!(ending(&daemon, &id)["masked"], 1);
}
