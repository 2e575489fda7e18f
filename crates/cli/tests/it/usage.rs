use crate::harness::{Fixture, LASTBYTE, check, finish};

const EXAMPLE: &str = "
Pass one quoted shell command, or a program and its arguments after `--`:
  lastbyte run 'make test | tail -5'
  lastbyte run -- make test
";

/// Checks that the call is refused, with this first line.
#[track_caller]
fn refused(arguments: &[&str], line: &str) {
    check(arguments, 2, "", &format!("lastbyte: {line}\n"));
}

#[track_caller]
fn refused_with_example(arguments: &[&str], line: &str) {
    refused(arguments, &format!("{line}\n{}", EXAMPLE.trim_end()));
}

#[track_caller]
fn refused_with_fix(arguments: &[&str], line: &str, quoted: &str, plain: &str) {
    let fix = format!(
        "\n\nQuote the command, or put it after `--`:\n  lastbyte run {quoted}\n  lastbyte run -- {plain}"
    );
    refused(arguments, &format!("{line}{fix}"));
}

#[test]
fn a_missing_command_is_refused_with_an_example() {
    refused_with_example(&[], "no command given");
    refused_with_example(&["--"], "no command given");
    refused_with_example(&["--summary"], "no command given");
    refused_with_example(&[""], "the command is empty");
    refused_with_example(&["--", ""], "the program name is empty");
}

#[test]
fn two_commands_are_refused() {
    let line = "got both a shell command and a program after `--`; give only one";
    refused_with_example(&["x", "--", "y"], line);
}

#[test]
fn an_unquoted_command_is_shown_quoted() {
    let line = |count| format!("pass the shell command as one quoted argument (got {count})");
    refused_with_fix(&["echo", "hello"], &line(2), "'echo hello'", "echo hello");
    refused_with_fix(
        &["--timeout", "2s", "grep", "a b", "x"],
        &line(3),
        r"'grep '\''a b'\'' x'",
        "grep 'a b' x",
    );
}

#[test]
fn an_option_of_the_command_is_not_mistaken_for_ours() {
    let line = |option| format!("{option} is not an option of `lastbyte run`");
    refused_with_fix(&["ls", "-l"], &line("-l"), "'ls -l'", "ls -l");
    refused_with_fix(&["df", "-h"], &line("-h"), "'df -h'", "df -h");
    refused_with_fix(&["x", "--help"], &line("--help"), "'x --help'", "x --help");
    let arguments = ["--cwd", "/", "ls", "--colour"];
    refused_with_fix(&arguments, &line("--colour"), "'ls --colour'", "ls --colour");
}

#[test]
fn the_value_of_an_unknown_option_is_not_mistaken_for_the_command() {
    for (arguments, advice) in [
        (["--state", "/tmp/x", "true"], "see `lastbyte run --help`"),
        (["-e", "A=1", "echo $A"], "to set a variable, use --env NAME=VALUE"),
        (["-w", "/tmp", "pwd"], "to choose a directory, use --cwd DIR"),
    ] {
        let option = arguments[0];
        refused(&arguments, &format!("{option} is not an option of `lastbyte run`; {advice}"));
    }
}

#[test]
fn an_option_of_another_program_is_answered_with_ours() {
    for (arguments, advice) in [
        ("run -d true", "to run in the background, use `lastbyte start`"),
        ("run -it sh", "for a terminal, use --tty"),
        ("run --name web true", "to name a process, use `lastbyte start --name NAME`"),
        ("start -d true", "leave it out: `lastbyte start` always runs in the background"),
        ("logs -n 10 web", "for the last lines, use --tail 10"),
        ("--color never logs -n10 web", "for the last lines, use --tail 10"),
        ("logs --lines=5 web", "for the last lines, use --tail 5"),
        ("logs -10 web", "for the last lines, use --tail 10"),
        ("logs web -5", "for the last lines, use --tail 5"),
        ("logs web -n", "for the last lines, use --tail COUNT"),
        ("stop -t 5 web", "to choose how long to wait before KILL, use --grace 5s"),
        ("stop --force web", "to kill at once, use --grace 0s"),
        ("signal -s KILL web", "the signal is the last argument: `lastbyte signal ID KILL`"),
        ("ps -a", "leave it out: `lastbyte ps` lists ended processes too"),
        ("attach --no-stdin web", "see `lastbyte attach --help`"),
        ("config show --bogus", "see `lastbyte config show --help`"),
    ] {
        let words: Vec<&str> = arguments.split(' ').collect();
        let refused = finish(Fixture::new().lastbyte(&words));
        let said = refused.stderr.strip_suffix('\n').and_then(|said| said.split_once("`; "));
        assert_eq!((refused.code, said.unwrap().1), (Some(2), advice), "{arguments}");
        assert!(!refused.stderr.contains("tip:"), "{refused:?}");
    }
}

#[test]
fn a_signal_before_the_ids_is_answered_with_the_right_order() {
    for (words, want) in [
        (["signal", "-9", "web", "db"].as_slice(), "web db 9"),
        (&["signal", "KILL", "web"], "web KILL"),
    ] {
        let refused = finish(Fixture::new().lastbyte(words));
        let want = format!("lastbyte: the signal is the last argument: `lastbyte signal {want}`\n");
        assert_eq!((refused.code, refused.stderr), (Some(2), want));
    }
}

#[test]
fn a_command_of_another_program_is_answered_with_ours() {
    for (name, advice) in [
        ("restart", "`lastbyte stop ID` stops a process; then start its command again"),
        ("stats", "`lastbyte ps --watch` shows what is running, `lastbyte show ID` what it used"),
        ("pause", "`lastbyte signal ID STOP` suspends a process"),
        ("top", "`lastbyte ps --watch` shows what is running"),
        ("kill", "`lastbyte stop ID` stops a process and everything it started"),
        ("kill-server", "`lastbyte shutdown` stops the server and everything it runs"),
        ("prune", "`lastbyte forget --ended` removes all ended processes and their output"),
        ("send-keys", "`lastbyte write ID` writes to a process"),
        ("daemon", "`lastbyte serve` runs the server; `lastbyte start` starts one if needed"),
    ] {
        let refused = finish(Fixture::new().lastbyte(&[name]));
        let want = format!("lastbyte: {name:?} is not a command; {advice}\n");
        assert_eq!((refused.code, refused.stderr), (Some(2), want));
    }
    let misspelt = finish(Fixture::new().lastbyte(&["doctr"]));
    assert!(misspelt.stderr.contains("a similar subcommand exists: 'doctor'"), "{misspelt:?}");
}

#[test]
fn a_hidden_command_is_not_offered() {
    let misspelt = |name: &str| finish(Fixture::new().lastbyte(&[name])).stderr;
    let said = misspelt("complet");
    assert!(said.contains("a similar subcommand exists: 'completions'\n"), "{said}");
    let said = misspelt("cli-do");
    assert!(said.starts_with("lastbyte: unrecognized subcommand 'cli-do'\n\nUsage:"), "{said}");
}

#[test]
fn a_command_of_another_program_means_nothing_below_a_command() {
    for arguments in [["config", "list"].as_slice(), &["--color", "never", "config", "list"]] {
        let refused = finish(Fixture::new().lastbyte(arguments));
        assert_eq!(refused.code, Some(2));
        let first = refused.stderr.lines().next();
        assert_eq!(first, Some("lastbyte: unrecognized subcommand 'list'"), "{refused:?}");
        assert!(!refused.stderr.contains("lastbyte ps"), "{refused:?}");
    }
    let refused = finish(Fixture::new().lastbyte(&["list", "config"]));
    assert!(refused.stderr.contains("`lastbyte ps` lists processes"), "{refused:?}");
}

#[test]
fn help_of_a_command_is_what_its_option_prints() {
    let print = |arguments: &[&str]| finish(Fixture::new().lastbyte(arguments));
    for command in [&["start"][..], &["config", "show"]] {
        let [by_name, by_option] =
            [[&["help"], command].concat(), [command, &["--help"]].concat()].map(|it| print(&it));
        assert_eq!((by_name.code, &by_name.stdout), (Some(0), &by_option.stdout));
    }
    assert_eq!(print(&["help"]).stdout, print(&["--help"]).stdout);
    assert_eq!(print(&["help", "no-such"]).code, Some(2));
}

#[test]
fn help_that_cannot_be_printed_is_an_error() {
    let finished = finish(Fixture::new().shell(r#""$LASTBYTE" run --help >/dev/full"#));
    assert_eq!(finished.code, Some(125));
    assert!(
        finished.stderr.starts_with("lastbyte: cannot write to standard output: "),
        "{finished:?}"
    );
}

#[test]
fn our_options_may_follow_the_shell_command() {
    check(&["echo $A", "--timeout", "1h", "--env", "A=b"], 0, "b\n", "");
}

#[test]
fn everything_after_the_dashes_belongs_to_the_command() {
    check(&["--", "echo", "--timeout", "--", "-h"], 0, "--timeout -- -h\n", "");
}

#[test]
fn a_misspelt_option_gets_a_suggestion() {
    let finished = finish(Fixture::new().run(&["x", "--timout", "2s"]));
    assert_eq!(finished.code, Some(2));
    assert!(finished.stderr.contains("a similar argument exists: '--timeout'"), "{finished:?}");
}

#[test]
fn an_invalid_duration_is_refused_with_an_example() {
    let accepted = "expected a number with a unit (ms, s, m, h or d), like 500ms, 2s, 1.5m or 1h";
    for option in ["--timeout", "--idle-timeout"] {
        for time in ["2", "-2s", "1h30m", "soon"] {
            let line = format!("invalid value '{time}' for '{option} <TIME>': {accepted}");
            refused(
                &[option, time, "x"],
                &format!("{line}\n\nFor more information, try '--help'."),
            );
        }
    }
}

#[test]
fn an_invalid_environment_edit_is_refused() {
    for given in ["=value", "", "export A=1"] {
        let line =
            format!("--env takes NAME=VALUE or NAME, and {given:?} does not begin with a name");
        refused(&["--env", given, "x"], &line);
    }
    refused(&["--unset", "A=B", "x"], "--unset takes a variable name, not \"A=B\"");
}

#[test]
fn without_a_subcommand_it_prints_help_and_fails() {
    let finished = finish(Fixture::new().program(&LASTBYTE));
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(2), ""));
    assert!(finished.stderr.contains("Usage: lastbyte [OPTIONS] <COMMAND>"), "{finished:?}");
}
