//! `logs --since` and `logs --timestamps`.

use std::io::Read;
use std::process::Child;
use std::time::{Duration, SystemTime};

use lastbyte_testkit::eventually;
use serde_json::Value;

use crate::daemon::Daemon;
use crate::harness::{Finished, expect, finish, start};

/// `2026-11-16T07:03:29.123Z` and a space.
const STAMP: usize = 25;

/// Waits until new output gets a new time.
fn until_next_stamp() {
    let then = SystemTime::now();
    let resolution = Duration::from_millis(100);
    eventually("the clock goes on", || SystemTime::now() > then + resolution);
}

/// The time of each line, and the lines without them.
fn split(text: &str) -> (Vec<String>, String) {
    let (mut times, mut lines) = (Vec::new(), String::new());
    for line in text.split_inclusive('\n') {
        let (time, line) = line.split_at(STAMP);
        times.push(checked(time));
        lines.push_str(line);
    }
    (times, lines)
}

/// The time, without the space after it.
#[track_caller]
fn checked(stamp: &str) -> String {
    let shape: String = stamp.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    assert_eq!(shape, "0000-00-00T00:00:00.000Z ", "{stamp:?}");
    stamp.trim_end().to_owned()
}

/// A process that wrote `old`, then later `new`, and keeps running.
fn old_and_new(daemon: &Daemon, arguments: &[&str]) -> String {
    let id = daemon.testchild(arguments, "hold");
    daemon.fixture.anchor.wait_for(1);
    for text in ["old", "new"] {
        daemon.fixture.anchor.tell(&format!(r"print {text}\n"));
        eventually(text, || daemon.result(&["logs", &id]).contains(text));
        until_next_stamp();
    }
    id
}

#[test]
fn output_that_ends_inside_a_character_is_shown() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&[], r"print line\nab\xe2 then hold");
    daemon.fixture.anchor.wait_for(1);
    let (_, lines) = split(&daemon.result(&["logs", "-t", &id]));
    assert_eq!(lines, "line\nab\u{fffd}", "the test's own reading of what is no character");
}

#[test]
fn since_shows_output_from_that_time_on() {
    let daemon = Daemon::start();
    for arguments in [[].as_slice(), &["--split"], &["--tty", "24x80"]] {
        let id = old_and_new(&daemon, arguments);
        let (times, lines) = split(&daemon.result(&["logs", "-t", &id]));
        let end = if arguments.contains(&"--tty") { "\r\n" } else { "\n" };
        assert_eq!(lines, format!("old{end}new{end}"));
        assert!(times[0] < times[1], "{times:?}");
        let new = format!("new{end}");
        let since = |more: &[&str]| {
            let mut all = vec!["logs", "--since", &times[1], &id];
            all.extend(more);
            daemon.result(&all)
        };
        assert_eq!(since(&[]), new);
        let last = format!("--from=-{}", new.len());
        assert_eq!(split(&daemon.result(&["logs", "-t", &last, &id])).1, new);
        assert_eq!(split(&since(&["-t"])), (vec![times[1].clone()], new));
        assert_eq!(daemon.result(&["logs", "--since", "1h", &id]), lines);
        assert_eq!(daemon.result(&["logs", "--since", &times[0], &id]), lines);
        assert_eq!(daemon.result(&["logs", "--since", "0s", &id]), "", "that is too old");
        assert_eq!(daemon.result(&["logs", "-t", "--since", "0s", &id]), "");
        daemon.result(&["stop", &id]);
        daemon.fixture.anchor.wait_for_at_most(0);
    }
}

#[test]
fn a_time_in_the_future_is_reported() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&[], "print old then hold");
    daemon.fixture.anchor.wait_for(1);
    eventually("old", || daemon.result(&["logs", &id]).contains("old"));
    let ahead = "2199-01-01T00:00:00+01:00";
    let told =
        |what: &str| format!("lastbyte: --since is in the future (2198-12-31T23:00:00Z): {what}\n");
    for more in [[].as_slice(), &["-t"]] {
        let arguments = [&["logs", "--since", ahead, &id], more].concat();
        daemon.check(&arguments, 0, "", &told("nothing to show"));
    }
    let mut follower = start(daemon.lastbyte(&["logs", "-f", "--since", ahead, &id]));
    let of_following = told("showing only new output");
    expect(follower.stderr.as_mut().unwrap(), &of_following);
    daemon.fixture.anchor.tell("print new");
    expect(follower.stdout.as_mut().unwrap(), "new");
    daemon.result(&["stop", &id]);
    assert_eq!(follower.wait().unwrap().code(), Some(0));
    daemon.check(&["logs", "-f", "--since", ahead, &id], 0, "", &of_following);
}

#[test]
fn times_long_ago_and_far_ahead_are_valid() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&[], "print all");
    daemon.result(&["wait", &id]);
    assert_eq!(daemon.result(&["logs", "--since", "1815-12-10T00:00:00Z", &id]), "all");
    let far = daemon.finish(&["logs", "--since", "9999-12-31T00:00:00Z", &id]);
    assert_eq!((far.code, far.stdout.as_str()), (Some(0), ""), "{far:?}");
    assert!(far.stderr.starts_with("lastbyte: --since is in the future ("), "{far:?}");
}

#[track_caller]
fn expect_stamp(follower: &mut Child) -> String {
    let mut stamp = [0; STAMP];
    follower.stdout.as_mut().unwrap().read_exact(&mut stamp).unwrap();
    checked(std::str::from_utf8(&stamp).unwrap())
}

#[test]
fn a_follower_stamps_a_line_in_pieces_once() {
    let daemon = Daemon::start();
    let id = old_and_new(&daemon, &[]);
    let mut follower = start(daemon.lastbyte(&["logs", "-f", "-t", &id]));
    for line in ["old\n", "new\n"] {
        expect_stamp(&mut follower);
        expect(follower.stdout.as_mut().unwrap(), line);
    }
    let mut said = |tell: &str, first: &str, rest: &str| {
        daemon.fixture.anchor.tell(&format!("print {tell}"));
        let at = (!first.is_empty()).then(|| {
            let stamp = expect_stamp(&mut follower);
            expect(follower.stdout.as_mut().unwrap(), first);
            stamp
        });
        expect(follower.stdout.as_mut().unwrap(), rest);
        until_next_stamp();
        at
    };
    let first = said("ab", "ab", "").unwrap();
    assert_eq!(said(r"c\n", "", "c\n"), None);
    let last = said("end", "end", "").unwrap();
    assert!(first < last, "{first} {last}");
    daemon.fixture.anchor.tell("exit 0");
    assert_eq!(follower.wait().unwrap().code(), Some(0));
}

#[test]
fn timestamps_work_with_every_selection_of_lines() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&["--split"], r"print a1\nb\na2\n then eprint e\n then exit 0");
    daemon.result(&["wait", &id]);
    for (arguments, want) in [
        (["--grep", "^a"].as_slice(), "a1\na2\n"),
        (&["--grep", "^2"], ""),
        (&["--stream", "stdout", "--head", "2"], "a1\nb\n"),
        (&["--stream", "stdout", "--tail", "1"], "a2\n"),
        (&["--stream", "stderr"], "e\n"),
        (&["--from", "99"], ""),
        (&["-f", "--stream", "stdout", "--grep", "b"], "b\n"),
    ] {
        let mut all = vec!["logs", "--timestamps", &id];
        all.extend(arguments);
        assert_eq!(split(&daemon.result(&all)).1, want, "{arguments:?}");
    }
}

#[test]
fn late_output_has_its_time() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&[], r"print early\n then leave-silent-holder");
    daemon.result(&["wait", &id]);
    daemon.fixture.anchor.wait_for(1);
    until_next_stamp();
    daemon.fixture.anchor.tell(r"print late\n");
    eventually("late output", || daemon.result(&["logs", "--late", &id]).contains("late"));
    let (times, lines) = split(&daemon.result(&["logs", "-t", "--late", &id]));
    assert_eq!(lines, "early\nlate\n");
    assert_eq!(daemon.result(&["logs", "--late", "--since", &times[1], &id]), "late\n");
    let told = "lastbyte: 5 more bytes were written after the end; use --late to see them\n";
    daemon.check(&["logs", "--since", &times[1], &id], 0, "", told);
    let followed = daemon.finish(&["logs", "-f", "-t", &id]);
    assert_eq!((split(&followed.stdout).1.as_str(), followed.stderr.as_str()), ("early\n", told));
    let follower = start(daemon.lastbyte(&["logs", "-f", "-t", "--late", &id]));
    daemon.fixture.anchor.tell("exit 0");
    let output = follower.wait_with_output().unwrap();
    assert_eq!(split(&String::from_utf8(output.stdout).unwrap()).1, "early\nlate\n");
}

#[test]
fn as_json_each_piece_has_its_stamps() {
    let daemon = Daemon::start();
    let id = old_and_new(&daemon, &[]);
    let piece =
        |arguments: &[&str]| -> Value { serde_json::from_str(&daemon.result(arguments)).unwrap() };
    let stamped = piece(&["logs", "--json", "-t", &id]);
    let stamps = stamped["stamps"].as_array().unwrap();
    let offsets: Vec<_> = stamps.iter().map(|stamp| &stamp["offset"]).collect();
    assert_eq!(offsets, [&Value::from(0), &Value::from(4)]);
    assert_eq!(piece(&["logs", "--json", &id]).get("stamps"), None);
}

#[test]
fn since_cannot_be_combined_with_another_start() {
    for (arguments, want) in [
        (["--since", "5m", "--from", "3"], "cannot be used with '--from <CURSOR>'"),
        (["--since", "5m", "--tail", "3"], "cannot be used with '--tail <COUNT>'"),
        (["--since", "-5m", "--head", "3"], "a time of day, like 14:30"),
    ] {
        let fixture = crate::harness::Fixture::new();
        let mut all = vec!["logs", "x"];
        all.extend(arguments);
        let Finished { stdout, stderr, .. } = finish(fixture.lastbyte(&all));
        assert_eq!((stdout.as_str(), stderr.contains(want)), ("", true), "{stderr}");
    }
}

/// A time zone that is nobody's, without a database.
const ZONE: (&str, &str) = ("TZ", "HERE-12:45");

#[test]
fn times_are_local_unless_utc_is_wanted() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&[], "print hello");
    daemon.result(&["wait", &id]);
    let print = |arguments: &[&str]| {
        let mut command = daemon.fixture.lastbyte(arguments);
        command.env(ZONE.0, ZONE.1);
        let Finished { code, stdout, stderr } = finish(command);
        assert_eq!((code, stderr.as_str()), (Some(0), ""), "{arguments:?}");
        stdout
    };
    for arguments in [&["show", &id][..], &["logs", "--timestamps", &id]] {
        let (local, utc) = (print(arguments), print(&[arguments, &["--utc"]].concat()));
        assert!(local.contains("+12:45"), "{local}");
        assert!(utc.contains('Z') && !utc.contains("+12:45"), "{utc}");
    }
}

#[test]
fn a_time_of_day_is_local() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&[], "print hello");
    daemon.result(&["wait", &id]);
    let since = |zone: &str, time: &str| {
        let mut command = daemon.fixture.lastbyte(&["logs", "--since", time, &id]);
        command.env("TZ", zone);
        finish(command)
    };
    // Far in the past and far in the future, wherever that is.
    assert_eq!(since(ZONE.1, "2026-01-01T00:00").stdout, "hello");
    let future = since(ZONE.1, "2100-01-01T12:45:00");
    assert_eq!(future.stdout, "");
    let said = "lastbyte: --since is in the future (2100-01-01T12:45:00+12:45): nothing to show\n";
    assert_eq!(future.stderr, said);
    // The last one before now.
    assert_eq!(since(ZONE.1, "00:00").stderr, "");
}
