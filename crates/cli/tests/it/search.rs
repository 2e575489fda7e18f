use lastbyte_testkit::pattern_bytes;
use serde_json::Value;

use crate::daemon::Daemon;
use crate::harness::finish;

#[test]
fn matches_are_printed_with_their_offsets() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&[], r"print zero\none\ntwo\nonce\n");
    daemon.result(&["wait", &id]);
    assert_eq!(daemon.result(&["search", &id, "^on"]), "5:one\n13:once\n");
    assert_eq!(daemon.result(&["search", &id, "-C1", "one"]), "0-zero\n5:one\n9-two\n");
    assert_eq!(daemon.result(&["search", &id, "--from", "9", "on"]), "13:once\n");
    let json: Value =
        serde_json::from_str(&daemon.result(&["search", &id, "--json", "two"])).unwrap();
    assert_eq!(json["matches"][0]["hits"][0]["start"], 9);
}

#[test]
fn a_search_reports_no_match_and_an_incomplete_result() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&[], r"print a\na\na\n");
    daemon.result(&["wait", &id]);
    let none = finish(daemon.lastbyte(&["search", &id, "b"]));
    assert_eq!((none.code, none.stdout.as_str(), none.stderr.as_str()), (Some(1), "", ""));
    let some = finish(daemon.lastbyte(&["search", &id, "--max", "2", "a"]));
    assert_eq!((some.code, some.stdout.as_str()), (Some(0), "0:a\n2:a\n"));
    assert_eq!(some.stderr, "lastbyte: stopped after 2 matches (--max); continue with --from 4\n");
    let one = finish(daemon.lastbyte(&["search", &id, "--max", "1", "a"]));
    assert_eq!(one.stderr, "lastbyte: stopped after 1 match (--max); continue with --from 2\n");
    let all = finish(daemon.lastbyte(&["search", &id, "--max", "3", "a"]));
    assert_eq!((all.stdout.as_str(), all.stderr.as_str()), ("0:a\n2:a\n4:a\n", ""));
    let bad = finish(daemon.lastbyte(&["search", &id, "("]));
    assert_eq!(bad.code, Some(2), "{}", bad.stderr);
}

#[test]
fn a_search_matches_what_a_person_sees_and_raw_the_bytes() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&[], r"print \x1b[31mer\x1b[0mror\r\n10%\r99%\n");
    daemon.result(&["wait", &id]);
    assert_eq!(daemon.result(&["search", &id, "^error$"]), "0:error\n");
    assert_eq!(daemon.result(&["search", &id, "%"]), "16:10%\n16:99%\n");
    daemon.check(&["search", "--raw", &id, "^error$"], 1, "", "");
    let raw = daemon.result(&["search", "--raw", &id, "^\\x1b.*ror$"]);
    assert_eq!(raw, "0:\\u{1b}[31mer\\u{1b}[0mror\n");
}

/// One request reads 64 MiB at most, so that the first ends within the line before the match.
#[test]
fn a_search_of_a_large_output_is_like_that_of_a_small_one() {
    let daemon = Daemon::start();
    let size = (64 << 20) - 2;
    let actions = format!(r"write-bytes {size} then print \nbefore\nTHE_END\nafter\n");
    let id = daemon.testchild(&["--quota", "100MB"], &actions);
    daemon.result(&["wait", &id]);
    let search = ["search", "--raw", "-C1", &id, "^THE_END$"];
    let want = "67108863-before\n67108870:THE_END\n67108878-after\n";
    daemon.check(&search, 0, want, "");
    let found: Value =
        serde_json::from_str(&daemon.result(&[&search[..], &["--json"]].concat())).unwrap();
    let newlines = pattern_bytes(0..size).iter().filter(|byte| **byte == b'\n').count();
    assert_eq!(found["matches"][0]["number"], newlines + 2);
    assert_eq!(found["next_number"], newlines + 4);
}
