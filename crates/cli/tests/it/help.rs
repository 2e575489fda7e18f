use std::os::unix::process::ExitStatusExt;

use rustix::process::Signal;

use crate::daemon::Daemon;
use crate::harness::{Finished, Fixture, finish, send, start};
use crate::pty::Pty;

#[test]
fn the_help_has_the_exit_codes_and_every_option() {
    let finished = finish(Fixture::new().run(&["--help"]));
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""));
    for text in [
        "Usage: lastbyte run [OPTIONS] 'SHELL COMMAND'",
        "  124 ",
        "  125 ",
        "  126 ",
        "  127 ",
        "  128+N ",
        "  2 ",
        "--timeout <TIME>",
        "--idle-timeout <TIME>",
        "--cwd <DIR>",
        "--env <NAME[=VALUE]>",
        "--env-file <FILE>",
        "--unset <NAME>",
        "--summary",
        "--json",
        "--sandbox <KIND>",
        "--writable <DIR>",
        "--protect <DIR>",
        "--network",
    ] {
        assert!(finished.stdout.contains(text), "{text:?} is not in\n{}", finished.stdout);
    }
    assert!(finished.stdout.ends_with('\n'));
}

/// The codes that the help of a command lists.
fn listed(command: &str) -> Vec<String> {
    let arguments: Vec<&str> = command.split(' ').chain(["--help"]).collect();
    let Finished { code, stdout, stderr } = finish(Fixture::new().lastbyte(&arguments));
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{command}");
    let (_, list) = stdout.split_once("\nExit codes:\n").expect("a list of exit codes");
    // A description may continue on a second line.
    let rows = list.lines().filter(|line| !line.starts_with("     "));
    rows.filter_map(|row| row.split_whitespace().next()).map(str::to_owned).collect()
}

#[test]
fn a_command_lists_exactly_the_exit_codes_that_it_can_return() {
    for (commands, want) in [
        ("write forget upgrade shutdown", "0 2 125"),
        ("show", "0 2 3 125"),
        ("signal", "0 1 2 3 125"),
        ("man completions config-show", "0 2 125"),
        ("stop doctor", "0 1 2 125"),
        ("search", "0 1 2 4 125"),
        ("ps events serve app-server", "0 2 125 128+N"),
        ("logs", "0 2 3 4 125 128+N"),
        ("attach", "N 0 2 124 125 128+N"),
        ("wait", "N 0 1 2 3 124 125 128+N"),
        ("start", "N 0 2 123 124 125 126 127 128+N"),
        ("run", "N 2 124 125 126 127 128+N"),
    ] {
        for command in commands.split(' ') {
            assert_eq!(listed(&command.replace("config-", "config ")).join(" "), want, "{command}");
        }
    }
}

/// What the program prints on a terminal this wide.
fn printed_on_terminal(fixture: &Fixture, width: u16, arguments: &[&str]) -> String {
    let mut pty = Pty::new(24, width);
    let program = pty.run(fixture.lastbyte(arguments));
    assert_eq!(pty.ends(program), Some(0));
    pty.seen.replace("\r\n", "\n")
}

/// A long path or option is not broken, but is on a line of its own.
#[track_caller]
fn check_width(text: &str, width: usize) {
    for line in text.lines().filter(|line| line.chars().count() > width) {
        assert_eq!(line.split_whitespace().count(), 1, "{line:?} in\n{text}");
    }
}

#[test]
fn help_is_broken_between_words() {
    let fixture = Fixture::new();
    for command in ["run", "serve", "logs"] {
        let whole = finish(fixture.lastbyte(&[command, "--help"])).stdout;
        check_width(&whole, 100);
        let broken = printed_on_terminal(&fixture, 64, &[command, "--help"]);
        check_width(&broken, 64);
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&broken), words(&whole), "{command}");
        let (_, codes) = broken.split_once("Exit codes:\n").unwrap();
        let is_aligned = |line: &str| line.starts_with(&" ".repeat(9)) || &line[8..9] == " ";
        assert!(codes.lines().all(is_aligned), "{codes}");
    }
    // However wide the terminal is.
    check_width(&printed_on_terminal(&fixture, 300, &["run", "--help"]), 100);
}

#[test]
fn on_a_terminal_the_doctor_breaks_lines_between_words() {
    let fixture = Fixture::new();
    let report = printed_on_terminal(&fixture, 80, &["doctor", "--color", "never"]);
    check_width(&report, 80);
    let plain = finish(fixture.lastbyte(&["doctor"])).stdout;
    assert!(plain.lines().count() < report.lines().count(), "{plain}");
}

#[test]
fn run_and_start_describe_the_quota_alike() {
    let described = |command: &str| {
        let help = finish(Fixture::new().lastbyte(&[command, "--help"])).stdout;
        let (_, quota) = help.split_once("--quota <SIZE>").expect("the option");
        quota.split("\n\n").next().map(str::to_owned)
    };
    assert_eq!(described("run"), described("start"));
}

#[test]
fn endless_commands_are_ended_by_an_interrupt() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&[], "hold");
    for call in [["events"].as_slice(), &["logs", "-f", &id]] {
        let mut going_on = start(daemon.lastbyte(call));
        send(&going_on, Signal::INT);
        assert_eq!(going_on.wait().unwrap().signal(), Some(2), "{call:?}");
        assert!(listed(call[0]).contains(&"128+N".to_owned()), "{call:?}");
    }
    daemon.result(&["stop", &id]);
}

#[test]
fn exit_code_125_is_explained_for_each_command() {
    for (command, want) in [
        ("show", "no server is running, no such process, or the server refused the request"),
        ("ps", "no server is running, or it refused the request"),
        ("start", "the server cannot be started, or it refused the request"),
    ] {
        let help = finish(Fixture::new().lastbyte(&[command, "--help"])).stdout;
        assert!(help.contains(&format!("  125    {want}\n")), "{help}");
    }
}

#[test]
fn the_exit_code_of_a_command_is_in_its_list() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&[], "exit 0");
    for (call, want) in [
        (["start", "--", "/no/such/program"].as_slice(), 127),
        (&["start", "--", "/dev/null"], 126),
        (&["search", &id, "x"], 1),
        (&["search", &id, "("], 2),
        (&["stop", &id], 0),
        (&["show", "nobody"], 125),
        (&["show", "--failed"], 3),
        (&["config", "show", "--config", "/no/such"], 2),
        (&["man", "/dev/null"], 125),
        (&["serve"], 125),
        (&["app-server", "--listen", "ws://192.0.2.1:1"], 125),
        (&["app-server"], 0),
    ] {
        let finished = daemon.finish(call);
        assert_eq!(finished.code, Some(want), "{call:?}: {finished:?}");
        let command = if call[0] == "config" { "config show" } else { call[0] };
        assert!(listed(command).contains(&want.to_string()), "{command}: {want}");
    }
}
