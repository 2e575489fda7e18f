//! Several processes at once: by their ids, by names, or by conditions.

use std::io::{BufRead, BufReader};

use serde_json::Value;

use crate::daemon::Daemon;
use crate::harness::start;
use crate::pty::Pty;

#[test]
fn of_fifty_jobs_the_three_that_fail_are_found_and_shown_in_two_commands() {
    let daemon = Daemon::start();
    for job in 1..=50 {
        let (label, fails) = (format!("job={job}"), [7, 23, 42].contains(&job));
        let script = format!("print job\\x20{job}\\n then exit {}", u8::from(fails));
        daemon.testchild(&["--session", "build", "--label", &label], &script);
    }
    let waited = daemon.finish(&["wait", "--session", "build"]);
    assert_eq!((waited.code, waited.stdout.lines().count()), (Some(1), 50));
    assert_eq!(waited.stdout.matches("exit 1").count(), 3, "{}", waited.stdout);
    // The first command: which failed.
    let listed = daemon.result(&["ps", "--failed"]);
    let labels: Vec<_> = listed.lines().filter_map(|line| line.split("job=").nth(1)).collect();
    let job = |line: &&str| line.split_whitespace().next().unwrap().to_owned();
    assert_eq!(labels.iter().map(job).collect::<Vec<_>>(), ["42", "23", "7"], "{listed}");
    // The second: what they said.
    let logs = daemon.result(&["logs", "--failed"]);
    let said: Vec<_> = logs.lines().filter_map(|line| line.split(" | ").nth(1)).collect();
    assert_eq!(said, ["job 7", "job 23", "job 42"], "{logs}");
    let shown = daemon.result(&["show", "--failed"]);
    assert_eq!(shown.matches("ending     exit 1\n").count(), 3, "{shown}");
}

#[test]
fn lines_of_several_logs_have_the_name_of_their_process() {
    let daemon = Daemon::start();
    let other = daemon.testchild(&[], r"print three\n");
    daemon.testchild(&["--name", "web"], r"print one\ntwo");
    daemon.check(
        &["wait", "web", &other],
        0,
        &format!("web       exit 0\n{}  exit 0\n", &other[28..]),
        "",
    );
    let want = format!("web      | one\nweb      | two\n{} | three\n", &other[28..]);
    daemon.check(&["logs", "web", &other], 0, &want, "");
    let tail = format!("web      | two\n{} | three\n", &other[28..]);
    daemon.check(&["logs", "web", &other, "--tail", "1"], 0, &tail, "");
    daemon.check(&["logs", "web", &other, "--grep", "t.o"], 0, "web      | two\n", "");
    let unknown =
        "lastbyte: zzzz: no process with the id or name zzzz; `lastbyte ps` lists processes\n";
    daemon.check(&["logs", "zzzz", "web"], 125, "web | one\nweb | two\n", unknown);
    let json = daemon.result(&["logs", "web", &other, "--json"]);
    let ids: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(ids.iter().any(|piece| piece["process"] == other), "{json}");
}

#[test]
fn on_a_terminal_a_carriage_return_does_not_overwrite_the_name() {
    let daemon = Daemon::start();
    daemon.testchild(&["--name", "web"], r"print 10%\r99%\n\x1b[31mred\x1b[0m\n");
    daemon.testchild(&["--name", "db"], r"print up\n");
    daemon.finish(&["wait", "web", "db"]);
    let mut pty = Pty::new(24, 80);
    let logs = pty.run(daemon.lastbyte(&["logs", "web", "db"]));
    assert_eq!(pty.ends(logs), Some(0));
    assert_eq!(pty.seen, "web | 99%\r\nweb | red\r\ndb  | up\r\n");
    let piped = daemon.result(&["logs", "web", "db"]);
    assert_eq!(piped, "web | 10%\r99%\nweb | \x1b[31mred\x1b[0m\ndb  | up\n");
}

#[test]
fn several_logs_are_followed_line_by_line() {
    let daemon = Daemon::start();
    for (name, first) in [("web", "up"), ("db", "ready")] {
        daemon.testchild(&["--name", name], &format!(r"print {first}\nunfinished then hold"));
    }
    daemon.fixture.anchor.wait_for(2);
    let mut follow = start(daemon.lastbyte(&["logs", "-f", "web", "db"]));
    let mut lines = BufReader::new(follow.stdout.take().unwrap()).lines();
    let mut two = || {
        let mut two: Vec<String> = lines.by_ref().take(2).map(Result::unwrap).collect();
        two.sort();
        two
    };
    assert_eq!(two(), ["db  | ready", "web | up"]);
    daemon.fixture.anchor.tell(r"print :end\n");
    daemon.fixture.anchor.tell("exit 0");
    assert_eq!(two(), ["db  | unfinished:end", "web | unfinished:end"]);
    assert_eq!(two(), Vec::<String>::new());
    assert_eq!(follow.wait().unwrap().code(), Some(0));
}

#[test]
fn several_are_stopped_and_each_failure_is_told() {
    let daemon = Daemon::start();
    daemon.testchild(&["--name", "web"], "hold");
    daemon.testchild(&["--name", "db"], "hold");
    daemon.fixture.anchor.wait_for(2);
    let stopped = daemon.finish(&["stop", "web", "nobody", "db"]);
    daemon.fixture.anchor.wait_for_at_most(0);
    let lines: Vec<_> = stopped.stdout.lines().collect();
    assert!(lines[0].starts_with("web  stopped 1 process, none"), "{stopped:?}");
    assert!(lines[1].starts_with("db   stopped 1 process, none"), "{stopped:?}");
    let nobody =
        "lastbyte: nobody: no process with the id or name nobody; `lastbyte ps` lists processes\n";
    assert_eq!((stopped.code, lines.len(), stopped.stderr.as_str()), (Some(125), 2, nobody));
    daemon.check(
        &["stop", "--running"],
        0,
        "",
        "lastbyte: nothing that matches --running is running\n",
    );
    daemon.testchild(&["--session", "s"], "hold");
    let json = daemon.result(&["stop", "--session", "s", "--json"]);
    let outcome: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(outcome["proof"]["left"], serde_json::json!([]));
}

#[test]
fn a_wait_for_any_has_the_outcome_of_the_first() {
    let daemon = Daemon::start();
    daemon.testchild(&["--name", "web"], "hold");
    daemon.testchild(&["--name", "job"], "exit 3");
    daemon.check(&["wait", "--any", "web", "job"], 1, "job  exit 3\n", "");
    let timed_out = "web  timed out; the process keeps running\njob  exit 3\n";
    daemon.check(&["wait", "--all", "web", "job", "--timeout", "10ms"], 124, timed_out, "");
    let unknown =
        "lastbyte: nobody: no process with the id or name nobody; `lastbyte ps` lists processes\n";
    daemon.check(&["wait", "web", "nobody"], 125, "", unknown);
}

#[test]
fn a_selection_that_matches_nothing_says_so() {
    let daemon = Daemon::start();
    let none = "lastbyte: no process matches --session 'a b' --failed\n";
    for (command, code) in [("show", 3), ("logs", 3), ("wait", 3), ("forget", 0)] {
        daemon.check(&[command, "--failed", "--session", "a b"], code, "", none);
    }
    // These leave out what has ended.
    let none = "lastbyte: nothing that matches --session 'a b' --failed is running\n";
    daemon.check(&["stop", "--failed", "--session", "a b"], 0, "", none);
    daemon.check(&["signal", "--failed", "--session", "a b", "TERM"], 3, "", none);
    daemon.check(&["stop", "--all"], 0, "", "lastbyte: nothing is running\n");
    let nothing = "lastbyte: give a process id or name, or a selection like --failed or --session; \
                   `lastbyte ps` lists processes\n";
    daemon.check(&["stop"], 2, "", nothing);
    let both = "lastbyte: give process ids, or a selection like --failed or --session, not both\n";
    daemon.check(&["stop", "web", "--failed"], 2, "", both);
    daemon.check(
        &["signal"],
        2,
        "",
        "lastbyte: no signal given; `lastbyte signal ID TERM` sends TERM\n",
    );
}

#[test]
fn ended_processes_are_forgotten_together() {
    let daemon = Daemon::start();
    daemon.testchild(&["--name", "web"], "hold");
    let ended: Vec<String> = (0..3).map(|_| daemon.testchild(&[], "exit 0")).collect();
    let ids: Vec<&str> = ended.iter().map(String::as_str).collect();
    daemon.result(&[&["wait"], &ids[..]].concat());
    let forgotten = daemon.result(&["forget", "--ended"]);
    assert_eq!(forgotten.matches("forgotten").count(), 3, "{forgotten}");
    let refused = daemon.finish(&["forget", "--all"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(125), ""), "{refused:?}");
    assert!(refused.stderr.starts_with("lastbyte: web: the process "), "{refused:?}");
    daemon.check(&["forget", "--all", "--stop"], 0, "web  forgotten\n", "");
}

#[test]
fn a_name_is_that_of_one_running_process_and_taken_wherever_an_id_is() {
    let daemon = Daemon::start();
    let web = daemon.testchild(&["--name", "web"], r"print first\n then hold");
    daemon.fixture.anchor.wait_for(1);
    let taken = daemon.finish(&["start", "--name", "web", "true"]);
    let want = format!(
        "lastbyte: the name \"web\" is taken: process {web} has it and is running; stop that process \
         first, or use another name\n"
    );
    assert_eq!((taken.code, taken.stderr), (Some(125), want));
    daemon.check(&["wait", "web", "--pattern", "f.*t"], 0, "first\n", "");
    daemon.result(&["stop", "web"]);
    daemon.testchild(&["--name", "web"], r"print second\n");
    daemon.check(&["wait", "web"], 0, "", "");
    daemon.check(&["logs", "web"], 0, "second\n", "");
    daemon.check(&["logs", "--name", "web"], 0, "web | first\nweb | second\n", "");
}

#[test]
fn what_an_ended_process_left_running_is_marked_in_the_list() {
    let daemon = Daemon::start();
    daemon.testchild(&["--name", "web"], "setsid-background hold end then exit 0");
    daemon.fixture.anchor.wait_for(1);
    daemon.finish(&["wait", "web"]);
    let listed = daemon.result(&["ps", "--name", "web"]);
    let words: Vec<Vec<&str>> =
        listed.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(words[0], ["ID", "NAME", "AGE", "PHASE", "ENDING", "SIZE", "COMMAND"]);
    assert_eq!(words[1][1], "web");
    assert_eq!(words[1][3..9], ["ended", "exit", "0,", "survivors", "0", "B"], "{listed}");
    daemon.result(&["stop", "web"]);
    assert!(!daemon.result(&["ps"]).contains("survivors"));
}
