//! What other tests rely on when they run `testchild`.
#![expect(clippy::disallowed_methods, reason = "lastbyte does not start the child under test")]
#![expect(clippy::unwrap_used, reason = "a failure in a test's own plumbing fails the test")]

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Output, Stdio};

use lastbyte_testkit::{
    Anchor, children_of, eventually, is_alive, pattern_bytes, script, testchild,
};

/// Starts `testchild` with this script, its streams piped, connected to the anchor.
fn start(anchor: &Anchor, actions: &str) -> Child {
    Command::new(testchild())
        .args(&script(actions)[1..])
        .envs([anchor.env()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Runs a script that leaves no process behind.
fn run(actions: &str) -> Output {
    start(&Anchor::listen(), actions).wait_with_output().unwrap()
}

/// The first `count` lines of stdout as pids.
fn pids_printed(child: &mut Child, count: usize) -> BTreeSet<u32> {
    let lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    lines.take(count).map(|line| line.unwrap().parse().unwrap()).collect()
}

/// The session of a process from `/proc`, which shows 0 for a leader outside our pid namespace;
/// `getsid` of rustix cannot return 0.
fn session_of(pid: u32) -> u32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let after_name = stat.rsplit_once(") ").unwrap().1;
    after_name.split(' ').nth(3).unwrap().parse().unwrap()
}

#[test]
fn actions_run_in_order_and_exit_sets_the_exit_code() {
    let output = run(r"print a\n\xff\0 then eprint b then print c then exit 3 then print d");
    assert_eq!(output.stdout, b"a\n\xff\0c");
    assert_eq!(output.stderr, b"b");
    assert_eq!(output.status.code(), Some(3));
}

#[test]
fn written_bytes_are_the_pattern_on_each_stream() {
    let output = run("write-bytes 70000 then alternate 3 then write-bytes 100 err");
    assert_eq!(output.stdout, pattern_bytes(0..70_003));
    assert_eq!(output.stderr, pattern_bytes(0..103));
}

#[test]
fn the_pattern_begins_where_it_is_told_to() {
    let output = run("pattern-from 99 then write-bytes 70000 then write-bytes 100 err");
    assert_eq!(output.stdout, pattern_bytes(99..70_099));
    assert_eq!(output.stderr, pattern_bytes(99..199));
}

#[test]
fn an_aborted_write_leaves_half_of_the_bytes_and_a_signal() {
    let output = run("abort-mid-write 1000");
    assert_eq!(output.stdout, pattern_bytes(0..500));
    assert_eq!(output.status.signal(), Some(9));
}

#[test]
fn a_signal_to_itself_kills_even_if_the_runtime_handles_it() {
    for signal in [1, 6, 7, 11, 13, 15] {
        let output = run(&format!("kill-self {signal} then exit 0"));
        assert_eq!(output.status.signal(), Some(signal));
    }
}

#[test]
fn a_write_to_a_closed_pipe_kills() {
    let anchor = Anchor::listen();
    let mut child = start(&anchor, "await-eof then print x then exit 0");
    drop(child.stdout.take());
    drop(child.stdin.take());
    assert_eq!(child.wait().unwrap().signal(), Some(13));
}

#[test]
fn an_ignored_signal_does_nothing_and_a_trapped_one_runs_its_action() {
    let output = run("ignore 15 2 then kill-self 15 then kill-self 2 then print alive");
    assert_eq!(output.stdout, b"alive");

    let anchor = Anchor::listen();
    let mut child = start(&anchor, "trap 10 print caught then trap 15 exit 7 then hold");
    anchor.wait_for(1);
    anchor.tell("kill-self 10");
    let mut caught = [0; 6];
    child.stdout.as_mut().unwrap().read_exact(&mut caught).unwrap();
    assert_eq!(&caught, b"caught");
    anchor.tell("kill-self 15");
    assert_eq!(child.wait().unwrap().code(), Some(7));
}

#[test]
fn a_tree_prints_its_pids_when_all_are_connected() {
    for (actions, count) in [("tree 7 mixed", 7), ("tree 3 double", 3), ("stubborn-tree 4", 4)] {
        let anchor = Anchor::listen();
        let mut child = start(&anchor, &format!("{actions} then hold"));
        let printed = pids_printed(&mut child, count);
        assert_eq!(printed.len(), count);
        assert!(printed.is_subset(&anchor.pids().into_iter().collect()));
        let held: BTreeSet<u32> = anchor.wait_for(count + 1).into_iter().collect();
        assert_eq!(held, &printed | &BTreeSet::from([child.id()]));
        drop(anchor);
        assert!(child.wait().unwrap().success());
    }
}

#[test]
fn a_mixed_tree_has_children_sessions_and_orphans() {
    let anchor = Anchor::listen();
    let mut child = start(&anchor, "tree 6 mixed then hold");
    let printed = pids_printed(&mut child, 6);
    let children: BTreeSet<u32> = children_of(child.id()).into_iter().collect();
    assert_eq!(children.len(), 4, "two of the six are orphans");
    assert!(children.is_subset(&printed));
    let own_session = |pid: &&u32| session_of(**pid) == **pid;
    assert_eq!(printed.iter().filter(own_session).count(), 4, "orphans have sessions too");
}

#[test]
fn a_stubborn_tree_survives_signals_and_ends_with_its_anchor() {
    let anchor = Anchor::listen();
    let mut child = start(&anchor, "stubborn-tree 3 then exit 0");
    let pids = pids_printed(&mut child, 3);
    child.wait().unwrap();
    for signal in [1, 2, 15] {
        anchor.tell(&format!("kill-self {signal}"));
    }
    anchor.tell("print x");
    let mut three = [0; 3];
    child.stdout.as_mut().unwrap().read_exact(&mut three).unwrap();
    assert!(pids.iter().all(|pid| is_alive(*pid)));
    drop(anchor);
    eventually("the tree is gone", || pids.iter().all(|pid| !is_alive(*pid)));
}

#[test]
fn a_fork_bomb_stops_at_its_limit() {
    let anchor = Anchor::listen();
    let mut child = start(&anchor, "fork-bomb 10 then exit 0");
    child.wait().unwrap();
    let bombs = anchor.wait_for(10);
    assert_eq!(bombs.len(), 10);
    // Each of the ten started its children before it connected, so there are no more.
    assert!(bombs.iter().flat_map(|bomb| children_of(*bomb)).all(|pid| bombs.contains(&pid)));
}

#[test]
fn a_tail_arrives_after_the_exit_and_its_holder_can_still_write() {
    let anchor = Anchor::listen();
    let mut child = start(&anchor, "leave-tail");
    assert!(child.wait().unwrap().success());
    let mut stdout = child.stdout.take().unwrap();
    let mut tail = [0; 4];
    stdout.read_exact(&mut tail).unwrap();
    assert_eq!(&tail, b"tail");
    let holder = anchor.wait_for(1)[0];
    assert!(is_alive(holder));
    anchor.tell(r"print later\x20output\n");
    drop(child.stdin.take());
    let mut line = String::new();
    let mut stdout = BufReader::new(stdout);
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "later output\n");
    anchor.tell("exit 0");
    assert!(anchor.wait_for_at_most(0).is_empty());
    assert_eq!(stdout.read_line(&mut line).unwrap(), 0, "stdout is closed");
}

#[test]
fn a_chatty_holder_continues_the_pattern() {
    let anchor = Anchor::listen();
    let mut child = start(&anchor, "write-bytes 20 then leave-chatty-holder 1");
    assert!(child.wait().unwrap().success());
    let mut bytes = [0; 40];
    child.stdout.as_mut().unwrap().read_exact(&mut bytes).unwrap();
    assert_eq!(bytes, pattern_bytes(0..40)[..]);
}

#[test]
fn a_stopped_helper_ends_with_its_anchor_too() {
    let anchor = Anchor::listen();
    let mut child = start(&anchor, "stop-self then hold");
    anchor.wait_for(1);
    let status = format!("/proc/{}/status", child.id());
    eventually("it is stopped", || std::fs::read_to_string(&status).unwrap().contains("State:\tT"));
    drop(anchor);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_report_shows_what_the_process_inherited() {
    let anchor = Anchor::listen();
    let mut child = start(&anchor, "setsid-background report end then exit 0");
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let number = |name: &str| -> u32 {
        let value = line.split_once(&format!("\"{name}\":")).unwrap().1;
        value.split([',', '}']).next().unwrap().parse().unwrap()
    };
    assert_eq!(number("pid"), number("sid"));
    assert_eq!(number("pid"), number("pgid"));
    // The test runner may pass on more descriptors than these three.
    assert!(line.contains("\"fds\":[0,1,2"), "{line}");
    assert!(line.contains("\"has_ctty\":false,"), "{line}");
    assert!(line.contains("\"TESTCHILD_ANCHOR\""), "{line}");
    assert!(line.ends_with("]}\n"), "{line}");
    child.wait().unwrap();
}

#[test]
fn stdin_is_read_no_further_than_requested() {
    use std::io::Write;
    let anchor = Anchor::listen();
    let mut child = start(&anchor, "read-exactly 3 then print | then cat then print |");
    child.stdin.take().unwrap().write_all(b"abcdef").unwrap();
    assert_eq!(child.wait_with_output().unwrap().stdout, b"|def|");
}

#[test]
fn an_invalid_action_is_reported_and_exits_with_120() {
    for (actions, complaint) in [
        ("prnt x", "testchild: prnt: no such action\n"),
        ("print", "testchild: print: missing TEXT\n"),
        ("exit 0 1", "testchild: exit: unexpected argument 1\n"),
        ("background hold", "testchild: background: missing `end`\n"),
        ("tree 3 bushy", "testchild: tree: a tree is plain, setsid, double or mixed\n"),
        ("ignore 9", "testchild: ignore: signal 9 cannot be caught\n"),
    ] {
        let output = run(actions);
        assert_eq!(String::from_utf8(output.stderr).unwrap(), complaint);
        assert_eq!(output.status.code(), Some(120));
    }
}
