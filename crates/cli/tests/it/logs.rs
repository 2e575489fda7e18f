use std::io::{BufRead, BufReader, Read};

use lastbyte_testkit::{eventually, pattern_bytes};
use serde_json::{Value, json};

use crate::daemon::Daemon;
use crate::harness::{Fixture, expect, finish, start};

/// The output of a command, as bytes.
fn bytes(daemon: &Daemon, arguments: &[&str]) -> Vec<u8> {
    let output = start(daemon.lastbyte(arguments)).wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), b"".as_slice()));
    output.stdout
}

#[test]
fn a_follower_gets_every_byte_of_a_flood() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&[], "write-bytes 30000000");
    assert!(bytes(&daemon, &["logs", "-f", &id]) == pattern_bytes(0..30_000_000));
    assert!(bytes(&daemon, &["logs", &id]) == pattern_bytes(0..30_000_000));
}

#[test]
fn a_follower_sees_output_as_it_comes_and_ends_with_the_process() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&[], "hold");
    daemon.fixture.anchor.wait_for(1);
    let mut follower = start(daemon.lastbyte(&["logs", "-f", &id]));
    for text in ["one", "two"] {
        daemon.fixture.anchor.tell(&format!("print {text}"));
        expect(follower.stdout.as_mut().unwrap(), text);
    }
    daemon.fixture.anchor.tell("exit 7");
    assert_eq!(follower.wait().unwrap().code(), Some(0));
}

#[test]
fn without_follow_it_prints_the_output_so_far() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&[], "print 0123456789 then hold");
    daemon.fixture.anchor.wait_for(1);
    assert_eq!(daemon.result(&["logs", &id]), "0123456789");
    assert_eq!(daemon.result(&["logs", "--from", "7", &id]), "789");
    assert_eq!(daemon.result(&["logs", "--from", "-2", &id]), "89");
    assert_eq!(daemon.result(&["logs", "--from", "10", &id]), "");
}

#[test]
fn split_streams_can_be_read_separately() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&["--split"], "alternate 100000");
    assert_eq!(bytes(&daemon, &["logs", "-f", "--stream", "stdout", &id]).len(), 100_000);
    assert_eq!(bytes(&daemon, &["logs", "-f", "--stream", "stderr", &id]).len(), 100_000);
    assert_eq!(bytes(&daemon, &["logs", "-f", &id]).len(), 200_000);
}

#[test]
fn dropped_bytes_are_reported_and_the_rest_is_exact() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&["--quota", "1MiB"], "write-bytes 5000000");
    daemon.result(&["wait", &id]);
    let output = start(daemon.lastbyte(&["logs", &id])).wait_with_output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    let (count, range) = told
        .strip_prefix("lastbyte: ")
        .and_then(|told| told.strip_suffix(") were dropped\n"))
        .and_then(|told| told.split_once(" bytes ("))
        .unwrap_or_else(|| panic!("{told}"));
    let searched = daemon.finish(&["search", &id, "no such line"]);
    let want = format!("{} and not searched\n", told.trim_end());
    assert_eq!((searched.code, &searched.stderr), (Some(4), &want));
    for more in [["--grep", "no such line"].as_slice(), &["-f", "--raw", "--grep", "no such line"]]
    {
        daemon.check(&[&["logs", &id], more].concat(), 4, "", &want);
    }
    assert_eq!(
        daemon.finish(&["logs", &id, "--tail", "1", "--grep", "no such line"]).code,
        Some(0)
    );
    let all = daemon.finish(&["logs", "--all", "--grep", "no such line"]);
    assert_eq!((all.code, all.stdout.as_str()), (Some(4), ""));
    let (gone_from, gone_to) = range.split_once("..").unwrap();
    let (gone_from, gone_to): (u64, u64) = (gone_from.parse().unwrap(), gone_to.parse().unwrap());
    assert_eq!(count.parse::<u64>().unwrap(), gone_to - gone_from);
    let mut want = pattern_bytes(0..gone_from);
    want.extend(pattern_bytes(gone_to..5_000_000));
    assert!(output.stdout == want);
}

#[test]
fn an_invalid_cursor_is_told_what_it_takes() {
    let fixture = Fixture::new();
    for (arguments, want) in [
        (["logs", "last", "--from", "x"], "expected a whole number"),
        (["attach", "last", "--from", "x"], "expected a whole number"),
        (["search", "last", "x", "--from=-1"], "expected a whole number"),
        (["search", "last", "x", "-C300"], "expected 0 to 255"),
    ] {
        let finished = finish(fixture.lastbyte(&arguments));
        assert_eq!(finished.code, Some(2), "{finished:?}");
        let line = finished.stderr.lines().next().unwrap();
        assert!(line.ends_with(&format!(": {want}")), "{line}");
    }
}

#[test]
fn a_follower_says_that_the_server_was_killed() {
    for option in ["-f", "-ft"] {
        let mut daemon = Daemon::start();
        let id = daemon.testchild(&[], r"print x\n then hold");
        let mut follower = start(daemon.lastbyte(&["logs", option, &id]));
        let mut stdout = BufReader::new(follower.stdout.take().unwrap());
        stdout.read_line(&mut String::new()).unwrap();
        daemon.kill();
        let output = follower.wait_with_output().unwrap();
        let told = "lastbyte: the server is gone; what happened to the process is unknown\n";
        assert_eq!(String::from_utf8_lossy(&output.stderr), told, "{option}");
        assert_eq!(output.status.code(), Some(125));
    }
}

#[test]
fn late_output_is_shown_only_on_request() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&[], "print early then leave-silent-holder");
    daemon.result(&["wait", &id]);
    daemon.fixture.anchor.wait_for(1);
    daemon.fixture.anchor.tell("print late");
    let all = || daemon.result(&["logs", "--late", &id]);
    eventually("late output is in the log", || all() == "earlylate");
    let told = "lastbyte: 4 more bytes were written after the end; use --late to see them\n";
    daemon.check(&["logs", "-f", &id], 0, "early", told);
    let follower = start(daemon.lastbyte(&["logs", "-f", "--late", &id]));
    daemon.fixture.anchor.tell("exit 0");
    assert_eq!(follower.wait_with_output().unwrap().stdout, b"earlylate");
}

#[test]
fn late_output_that_is_left_out_is_told_if_all_else_is_shown() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&[], r"print early\n then leave-silent-holder");
    daemon.result(&["wait", &id]);
    daemon.check(&["logs", &id], 0, "early\n", "");
    daemon.check(&["search", &id, "x"], 1, "", "");
    daemon.fixture.anchor.wait_for(1);
    daemon.fixture.anchor.tell("print x");
    let all = || daemon.result(&["logs", "--late", &id]);
    eventually("late output is in the log", || all() == "early\nx");
    let told = "lastbyte: 1 more byte was written after the end; use --late to see it\n";
    daemon.check(&["logs", &id], 0, "early\n", told);
    daemon.check(&["logs", "--tail", "1", &id], 0, "early\n", told);
    daemon.check(&["search", &id, "x"], 1, "", told);
    let stamped = daemon.finish(&["logs", "--timestamps", &id]);
    assert_eq!(stamped.stderr, told);
    for call in [
        ["logs", "--head", "1", &id].as_slice(),
        &["logs", "--grep", "early", &id],
        &["logs", "--stream", "stdout", &id],
        &["logs", &id, &id],
        &["logs", "--json", &id],
        &["search", &id, "early"],
        &["search", "--late", &id, "x"],
    ] {
        daemon.result(call);
    }
    let shown = daemon.result(&["show", &id]);
    let output = "output     6 bytes, and 1 after the end";
    assert!(shown.lines().any(|line| line == output), "{shown}");
}

#[test]
fn a_follower_without_output_notices_that_its_reader_is_gone() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&[], "print x then hold");
    let mut follower = start(daemon.lastbyte(&["logs", "-f", &id]));
    expect(follower.stdout.as_mut().unwrap(), "x");
    drop(follower.stdout.take());
    assert_eq!(follower.wait().unwrap().code(), Some(0));
}

#[test]
fn a_reader_that_goes_away_is_not_an_error() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&[], "join then flood");
    let mut follower = start(daemon.lastbyte(&["logs", "-f", &id]));
    follower.stdout.as_mut().unwrap().read_exact(&mut [0; 100]).unwrap();
    drop(follower.stdout.take());
    let output = follower.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), b"".as_slice()));
}

#[test]
fn json_prints_a_line_for_each_piece() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&[], "print hi");
    let lines = daemon.result(&["logs", "-f", "--json", &id]);
    let pieces: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let last = pieces.last().unwrap();
    assert_eq!(
        (&last["phase"], &last["next"], &last["final_len"]),
        (&json!("ended"), &json!(2), &json!(2))
    );
    assert!(pieces.iter().any(|piece| piece["content"]["text"] == "hi"), "{lines}");
    let forgotten = daemon.result(&["forget", "--json", &id]);
    assert_eq!(serde_json::from_str::<Value>(&forgotten).unwrap(), json!({ "forgotten": id }));
}

#[test]
fn json_has_base64_only_for_what_is_not_text() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&[], r"print \xc3\xa9\n\xffx");
    daemon.result(&["wait", &id]);
    let lines = daemon.result(&["logs", "--json", &id]);
    let part = |line: &str| {
        let piece: Value = serde_json::from_str(line).unwrap();
        json!([piece["from"], piece["next"], piece["content"]])
    };
    let want = [
        json!([0, 3, { "view": "raw", "text": "\u{e9}\n" }]),
        json!([3, 5, { "view": "raw", "base64": "/3g=" }]),
    ];
    assert_eq!(lines.lines().map(part).collect::<Vec<_>>(), want, "{lines}");
}

#[test]
fn head_tail_and_grep_print_exact_lines() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&[], r"print a\n\xff\nb\nc then hold");
    daemon.fixture.anchor.wait_for(1);
    for (arguments, want) in [
        (["--head", "2"], b"a\n\xff\n".as_slice()),
        (["--head", "0"], b""),
        (["--head", "9"], b"a\n\xff\nb\nc"),
        (["--tail", "1"], b"c"),
        (["--tail", "3"], b"\xff\nb\nc"),
        (["--tail", "9"], b"a\n\xff\nb\nc"),
        (["--tail", "0"], b""),
        (["--grep", "^[bc]"], b"b\nc"),
        (["--grep", "nothing"], b""),
    ] {
        let shown = bytes(&daemon, &["logs", arguments[0], arguments[1], &id]);
        assert_eq!(shown, want, "{arguments:?}");
    }
    let all = ["logs", "--tail", "3", "--grep", "^[a-z]", "--head", "1", &id];
    assert_eq!(bytes(&daemon, &all), b"b\n");
}

#[test]
fn head_tail_and_grep_can_follow() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&[], r"print old\nnew\n then hold");
    daemon.fixture.anchor.wait_for(1);
    let mut tail = start(daemon.lastbyte(&["logs", "-f", "--tail", "1", &id]));
    let mut head = start(daemon.lastbyte(&["logs", "-f", "--head", "3", &id]));
    let mut grep = start(daemon.lastbyte(&["logs", "-f", "--grep", "newer", &id]));
    expect(tail.stdout.as_mut().unwrap(), "new\n");
    daemon.fixture.anchor.tell(r"print newer\nnewest");
    expect(tail.stdout.as_mut().unwrap(), "newer\nnewest");
    expect(grep.stdout.as_mut().unwrap(), "newer\n");
    // The process still runs: the third line ends this one.
    assert_eq!(head.wait().unwrap().code(), Some(0));
    expect(head.stdout.as_mut().unwrap(), "old\nnew\nnewer\n");
    daemon.fixture.anchor.tell("exit 0");
    assert_eq!(tail.wait().unwrap().code(), Some(0));
    assert_eq!(grep.wait().unwrap().code(), Some(0));
}

#[test]
fn lines_of_each_stream_are_counted_separately() {
    let daemon = Daemon::start();
    let id = daemon.result(&["start", "--split", "echo a; echo x >&2; echo b; echo y >&2"]);
    daemon.result(&["wait", id.trim()]);
    for (arguments, want) in [
        (["--stream", "stdout", "--tail", "1"], "b\n"),
        (["--stream", "stderr", "--tail", "9"], "x\ny\n"),
        (["--stream", "stderr", "--head", "1"], "x\n"),
    ] {
        let mut all = vec!["logs", id.trim()];
        all.extend(arguments);
        assert_eq!(daemon.result(&all), want, "{arguments:?}");
    }
}

#[test]
fn a_tail_that_is_too_long_is_reported() {
    let daemon = Daemon::start();
    let flood = "head -c 5000000 /dev/zero | tr '\\0' x; echo; echo end";
    let id = daemon.result(&["start", flood]);
    daemon.result(&["wait", id.trim()]);
    let told = "lastbyte: showing the last 1 lines; more do not fit into 4 MiB\n";
    daemon.check(&["logs", "--tail", "2", id.trim()], 0, "end\n", told);
}

#[test]
fn a_gap_splits_a_line_in_two() {
    let daemon = Daemon::start();
    let flood = "printf begun; head -c 5000000 /dev/zero | tr '\\0' x; echo ended";
    let id = daemon.result(&["start", "--quota", "256KiB", flood]);
    let id = id.trim();
    let shown = |arguments: &[&str]| {
        let mut all = vec!["logs", id];
        all.extend(arguments);
        daemon.finish(&all).stdout
    };
    daemon.result(&["wait", id]);
    let bytes = shown(&[]);
    assert_eq!(bytes.matches('\n').count(), 1, "byte for byte, there is one newline");
    let (begun, ended) = (shown(&["--grep", "begun"]), shown(&["--grep", "ended"]));
    assert!(begun.starts_with("begunx") && begun.ends_with("x\n"));
    assert!(ended.starts_with('x') && ended.ends_with("xended\n"));
    let both = format!("{begun}{ended}");
    assert!(both.replace('\n', "") == bytes.trim_end(), "nothing but the end of a line was added");
    for (arguments, want) in [
        (["--grep", "begun.*ended"].as_slice(), ""),
        (&["--grep", "x"], &both),
        (&["-f", "--grep", "x"], &both),
        (&["--tail", "2"], &both),
        (&["--tail", "1"], &ended),
        (&["--head", "1"], &begun),
        (&["--head", "2"], &both),
        (&["--grep", "x", "--head", "1"], &begun),
    ] {
        assert!(shown(arguments) == want, "{arguments:?}");
    }
    let stamped = shown(&["-t"]);
    let texts: Vec<&str> =
        stamped.lines().filter_map(|line| line.split_once(' ')).map(|(_, text)| text).collect();
    assert!(texts == both.lines().collect::<Vec<_>>(), "a time for each");
    assert_eq!(daemon.finish(&["search", id, "begun.*ended"]).code, Some(4));
    assert_eq!(daemon.finish(&["wait", id, "--pattern", "begun.*ended"]).code, Some(1));
}

#[test]
fn grep_matches_and_plain_prints_what_a_person_sees() {
    let daemon = Daemon::start();
    let log = r"print \x1b[31mer\x1b[0mror\r\n10%\r99%\r\n\x1b]0;title\x07ok\n";
    let id = daemon.testchild(&["--name", "x"], log);
    daemon.result(&["wait", &id]);
    for (arguments, want) in [
        (["--plain"].as_slice(), "error\n99%\nok\n"),
        (&["-f", "--plain"], "error\n99%\nok\n"),
        (&["--plain", "--tail", "1"], "ok\n"),
        (&["--plain", "--head", "1"], "error\n"),
        (&["--plain", "--grep", "^error$|title"], "error\n"),
        (&["--grep", "^error$"], "\x1b[31mer\x1b[0mror\r\n"),
        (&["--grep", "^99%$"], "10%\r99%\r\n"),
        (&["--grep", "title"], ""),
        (&["--raw", "--grep", "error"], ""),
        (&["--raw", "--grep", "title"], "\x1b]0;title\x07ok\n"),
    ] {
        daemon.check(&[&["logs", &id], arguments].concat(), 0, want, "");
    }
    let named = daemon.result(&["logs", "--all", "--plain", "--grep", "ok|err"]);
    assert_eq!(named, "x | error\nx | ok\n");
    for wrong in
        [["--raw"].as_slice(), &["--plain", "--json"], &["--plain", "--raw", "--grep", "x"]]
    {
        assert_eq!(daemon.finish(&[&["logs", &id], wrong].concat()).code, Some(2), "{wrong:?}");
    }
}
