use std::path::Path;
use std::process::Command;

use lastbyte_testkit::not_run;

use crate::daemon::{Daemon, Home};
use crate::harness::{Finished, Fixture, LASTBYTE, finish};
use crate::pty::Pty;

/// A script in which bash completes the last of these words as it does for a person.
fn script(words: &str) -> String {
    format!(
        r#"source <("$LASTBYTE" completions bash)
        COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
        registered=$(complete -p lastbyte); registered=${{registered#*-F }}
        ${{registered%% *}} lastbyte "${{COMP_WORDS[COMP_CWORD]}}" "${{COMP_WORDS[COMP_CWORD-1]}}"
        printf '%s\n' "${{COMPREPLY[@]}}""#
    )
}

fn lines_of(shell: Command) -> Vec<String> {
    let finished = finish(shell);
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""));
    finished.stdout.lines().map(str::to_owned).collect()
}

/// What bash offers without a server.
fn completed(words: &str) -> Vec<String> {
    let fixture = Fixture::new();
    let mut bash = fixture.program("bash");
    bash.args(["--norc", "-c", &script(words)]);
    lines_of(bash)
}

#[test]
fn bash_completes_commands_options_and_values() {
    assert_eq!(completed("lastbyte sta"), ["start"]);
    assert_eq!(completed("lastbyte ps --se"), ["--session", "--server"]);
    assert_eq!(completed("lastbyte run --sandbox rea"), ["read-only"]);
    assert_eq!(completed("lastbyte config sh"), ["show"]);
}

#[test]
fn completions_of_every_shell_have_every_command() {
    let fixture = Fixture::new();
    let help = finish(fixture.lastbyte(&["--help"])).stdout;
    let (_, commands) = help.split_once("Commands:\n").unwrap();
    let commands = commands.lines().take_while(|line| !line.is_empty());
    let commands: Vec<&str> = commands.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(commands.contains(&"start"), "{commands:?}");
    for shell in ["bash", "zsh", "fish"] {
        let script = finish(fixture.lastbyte(&["completions", shell])).stdout;
        for command in &commands {
            assert!(script.contains(command), "{shell} does not know {command}");
        }
    }
}

/// A server with a process in a session, and a home in which `lastbyte` is on the path.
fn known() -> (Daemon, String) {
    let daemon = Daemon::start();
    let options = ["--name", "web-1", "--session", "team-a", "--label", "kind=server"];
    let id = daemon.testchild(&options, "hold");
    // What a shell would run if it took it for code.
    let made = daemon.fixture.home.path().join("made");
    let code = format!("team-$(touch${{IFS}}{})", made.display());
    daemon.result(&["start", "--session", &code, "true"]);
    (daemon, id)
}

/// The program, with `lastbyte` on its path.
fn with_path(daemon: &Daemon, program: &str) -> Command {
    let folder = Path::new(&*LASTBYTE).parent().unwrap().to_str().unwrap();
    let mut command = daemon.fixture.program(program);
    command.env("PATH", format!("{folder}:{}", std::env::var("PATH").unwrap()));
    command
}

fn check_nothing_ran(daemon: &Daemon) {
    assert!(!daemon.fixture.home.path().join("made").exists(), "a session was run as code");
}

#[test]
fn bash_completes_what_the_server_knows() {
    let (daemon, id) = known();
    let completed = |words: &str| {
        let mut bash = with_path(&daemon, "bash");
        bash.args(["--norc", "-c", &script(words)]);
        lines_of(bash)
    };
    assert_eq!(completed("lastbyte stop we"), ["web-1"]);
    let all = completed("lastbyte logs ''");
    assert!(all.contains(&"web-1".to_owned()) && all.contains(&id[28..].to_owned()), "{all:?}");
    assert_eq!(completed(&format!("lastbyte show {}", &id[28..32])), [&id[28..]]);
    assert_eq!(completed(&format!("lastbyte show {}", &id[..34])), [id.as_str()]);
    assert_eq!(completed("lastbyte signal web-1 we"), ["web-1"]);
    assert_eq!(completed("lastbyte ps --session te"), ["team-a"]);
    assert_eq!(completed("lastbyte stop --label ki"), ["kind=server"]);
    assert_eq!(completed("lastbyte wait --name w"), ["web-1"]);
    assert_eq!(completed("lastbyte ps --se"), ["--session", "--server"]);
    check_nothing_ran(&daemon);
}

#[test]
fn without_a_server_completion_is_silent_and_starts_none() {
    let home = Home::new();
    for kind in ["ids", "names", "sessions", "labels"] {
        let want = Finished { code: Some(0), stdout: String::new(), stderr: String::new() };
        assert_eq!(home.finish(&["complete", kind, "a"]), want);
    }
    let stop = home.finish(&["stop", "last"]);
    assert!(stop.stderr.contains("no server is running"), "{stop:?}");
}

#[test]
fn fish_completes_what_the_server_knows() {
    if !is_installed("fish") {
        return;
    }
    let (daemon, id) = known();
    let completed = |line: &str| {
        let mut fish = with_path(&daemon, "fish");
        let script = format!("lastbyte completions fish | source; complete -C '{line}'");
        fish.args(["--no-config", "-c", &script]);
        lines_of(fish).iter().map(|line| line.split('\t').next().unwrap().to_owned()).collect()
    };
    let completed: &dyn Fn(&str) -> Vec<String> = &completed;
    assert_eq!(completed("lastbyte stop we"), ["web-1"]);
    assert_eq!(completed(&format!("lastbyte show {}", &id[28..32])), [&id[28..]]);
    assert_eq!(completed("lastbyte ps --session te"), ["team-a"]);
    assert_eq!(completed("lastbyte stop --label ki"), ["kind=server"]);
    check_nothing_ran(&daemon);
}

#[test]
fn zsh_completes_what_the_server_knows() {
    if !is_installed("zsh") {
        return;
    }
    let (daemon, _) = known();
    let mut terminal = Pty::new(24, 80);
    let mut zsh = with_path(&daemon, "zsh");
    zsh.arg("-f").env("TERM", "xterm");
    let zsh = terminal.run(zsh);
    // Split, so that only the answer and not its echo is the whole word.
    terminal.types("autoload -U compinit; compinit -u -D; source <(lastbyte completions zsh)\n");
    terminal.types("print re''ady\n");
    terminal.shows("ready");
    for (typed, completed) in
        [("stop we", "b-1"), ("ps --session te", "am-a"), ("wait --label ki", "nd=server")]
    {
        // Ctrl-U empties the line.
        terminal.types(&format!("\u{15}lastbyte {typed}\t"));
        terminal.shows(completed);
    }
    terminal.types("\u{15}exit\n");
    terminal.ends(zsh);
    check_nothing_ran(&daemon);
}

fn is_installed(shell: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap();
    let found = std::env::split_paths(&paths).any(|folder| folder.join(shell).exists());
    if !found {
        not_run(&format!("{shell} is not installed"));
    }
    found
}
