use crate::daemon::Daemon;
use crate::harness::{Finished, Fixture, finish};

#[test]
fn a_process_is_found_by_a_unique_prefix_or_suffix() {
    let daemon = Daemon::start();
    daemon.check(
        &["show", "last"],
        125,
        "",
        "lastbyte: there are no processes yet; start one with `lastbyte start`\n",
    );
    let first = daemon.result(&["start", "printf first"]);
    let second = daemon.result(&["start", "printf second"]);
    let (first, second) = (first.trim(), second.trim());
    for (given, want) in [
        (first, "first"),
        (&first[28..], "first"),
        (&second[28..], "second"),
        (&second[..35], "second"),
        ("last", "second"),
    ] {
        assert_eq!(daemon.result(&["logs", "-f", given]), want, "{given}");
    }
    let shared = &first[..4];
    let several = format!(
        "lastbyte: 2 process ids start or end with {shared:?}: {second}, {first}; ids share their \
         beginning: give the last eight characters\n"
    );
    daemon.check(&["logs", shared], 125, "", &several);
    let nobody = "lastbyte: no process with the id or name zzz; `lastbyte ps` lists processes\n";
    daemon.check(&["logs", "zzz"], 125, "", nobody);
    let short = "lastbyte: no process with the id or name 4f4; a part of an id needs at least 4 \
                 characters; `lastbyte ps` lists processes\n";
    daemon.check(&["logs", "4f4"], 125, "", short);
}

/// As from a script with an unset variable.
#[test]
fn an_empty_id_is_refused_without_asking_the_server() {
    let fixture = Fixture::new();
    let want = "lastbyte: the process id is empty; `lastbyte ps` lists processes, and `last` is \
                the newest\n";
    for call in [
        ["show", ""].as_slice(),
        &["logs", ""],
        &["search", "", "x"],
        &["wait", ""],
        &["attach", ""],
        &["write", "", "x"],
        &["signal", "", "TERM"],
        &["stop", ""],
        &["forget", ""],
    ] {
        let Finished { code, stdout, stderr } = finish(fixture.lastbyte(call));
        assert_eq!((code, stdout.as_str(), stderr.as_str()), (Some(2), "", want), "{call:?}");
    }
}
