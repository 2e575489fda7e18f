use serde_json::Value;

use crate::daemon::Daemon;
use crate::harness::finish;

#[test]
fn processes_are_listed_newest_first_with_their_endings() {
    let daemon = Daemon::start();
    let done = daemon.result(&["start", "printf abc; exit 3"]);
    daemon.finish(&["wait", done.trim()]);
    let running = daemon.testchild(&[], "hold");
    daemon.fixture.anchor.wait_for(1);
    let listed = daemon.result(&["ps"]);
    let words: Vec<Vec<&str>> =
        listed.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(words[0], ["ID", "AGE", "PHASE", "ENDING", "SIZE", "COMMAND"]);
    assert_eq!(words[1][0], &running[28..]);
    assert_eq!(words[1][2..5], ["running", "0", "B"]);
    assert_eq!(words[2][0], &done.trim()[28..]);
    assert_eq!(words[2][2..], ["ended", "exit", "3", "3", "B", "printf", "abc;", "exit", "3"]);
    assert_eq!(words.len(), 3);
}

#[test]
fn a_list_can_be_filtered_and_says_if_there_is_more() {
    let daemon = Daemon::start();
    let ids: Vec<String> = ["a", "b", "a"]
        .iter()
        .map(|session| daemon.result(&["start", "--session", session, "--label", "x=y", "true"]))
        .collect();
    let listed = |arguments: &[&str]| -> Vec<String> {
        let mut all = vec!["ps", "--json"];
        all.extend(arguments);
        let finished = daemon.finish(&all);
        assert_eq!(finished.code, Some(0), "{finished:?}");
        let process = |line: &str| serde_json::from_str::<Value>(line).unwrap();
        let id = |line: &str| format!("{}\n", process(line)["id"].as_str().unwrap());
        finished.stdout.lines().map(id).collect()
    };
    assert_eq!(listed(&[]), [&*ids[2], &ids[1], &ids[0]]);
    assert_eq!(listed(&["--session", "a"]), [&*ids[2], &ids[0]]);
    assert_eq!(listed(&["--label", "x=z"]), Vec::<String>::new());
    assert_eq!(listed(&["--limit", "1"]), [&*ids[2]]);
    let sessions: Vec<String> = daemon
        .result(&["ps"])
        .lines()
        .map(|line| line.split_whitespace().rev().nth(2).unwrap().to_owned())
        .collect();
    assert_eq!(sessions, ["SESSION", "a", "b", "a"]);
    let limited = daemon.finish(&["ps", "--limit", "1"]);
    assert_eq!(
        limited.stderr,
        "lastbyte: only the newest is shown; --limit shows more (at most 1000)\n"
    );
}

#[test]
fn a_list_says_that_nothing_matches_its_conditions() {
    let daemon = Daemon::start();
    daemon.check(&["ps", "--json"], 0, "", "");
    let told = "lastbyte: no process matches --session nosuch --phase lost\n";
    let ps = ["ps", "--session", "nosuch", "--phase", "lost"];
    let listed = daemon.finish(&ps);
    assert_eq!((listed.code, listed.stderr.as_str()), (Some(0), told));
    assert_eq!(listed.stdout.lines().count(), 1, "the heading");
    daemon.check(&[&ps[..], &["--json"]].concat(), 0, "", told);
}

#[test]
fn control_characters_in_a_command_are_escaped() {
    let daemon = Daemon::start();
    daemon.result(&["start", "true '\u{1b}[2J\n'"]);
    let listed = daemon.result(&["ps"]);
    assert_eq!(listed.lines().count(), 2, "{listed:?}");
    assert!(listed.ends_with("true '\\u{1b}[2J\\n'\n"), "{listed:?}");
}

#[test]
fn characters_that_reorder_or_hide_text_are_escaped() {
    let daemon = Daemon::start();
    let invisible = ['\u{202e}', '\u{2066}', '\u{200f}', '\u{61c}', '\u{200b}', '\u{feff}'];
    let name: String = invisible.iter().collect();
    let folder = daemon.fixture.home.path().join(format!("folder{name}"));
    std::fs::create_dir(&folder).unwrap();
    let label = format!("a={name}");
    let cwd = folder.to_str().unwrap();
    let command = format!("true {name}");
    let named = ["--label", &label, "--session", &name, "--key", &name, "--cwd", cwd, &command];
    let start = [["start"].as_slice(), &named].concat();
    let id = daemon.result(&start);
    let gone = daemon.finish(&["start", "--cwd", &format!("{cwd}/gone"), "true"]);
    assert_ne!(gone.code, Some(0), "{gone:?}");
    let printed = [daemon.result(&["ps"]), daemon.result(&["show", id.trim()]), gone.stderr];
    for text in printed {
        assert!(!text.contains(invisible), "{text:?}");
        assert!(text.contains("\\u{202e}\\u{2066}\\u{200f}\\u{61c}\\u{200b}\\u{feff}"), "{text:?}");
    }
}

/// `run --tty` gives the program a terminal.
#[test]
fn on_a_terminal_a_line_is_cut_to_its_width() {
    let daemon = Daemon::start();
    daemon.result(&["start", &format!("true {}", "x".repeat(200))]);
    for color in ["never", "always"] {
        let ps = format!("stty cols 60; exec $LASTBYTE ps --color {color}");
        let finished =
            finish(daemon.fixture.shell(&format!(r#"exec "$LASTBYTE" run --tty "{ps}""#)));
        assert_eq!(finished.stdout.contains('\u{1b}'), color == "always", "{finished:?}");
        let mut shown = finished.stdout.clone();
        for number in [0, 2, 31, 32, 33] {
            shown = shown.replace(&format!("\u{1b}[{number}m"), "");
        }
        let longest = shown.lines().map(|line| line.trim_end().chars().count()).max();
        assert_eq!(longest, Some(60), "{finished:?}");
        assert!(shown.trim_end().ends_with("x…"), "{finished:?}");
    }
}
