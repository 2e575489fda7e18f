use crate::harness::{Fixture, finish};

/// What bash offers for the last of these words.
fn completed(words: &str) -> Vec<String> {
    let fixture = Fixture::new();
    let mut bash = fixture.program("bash");
    let script = format!(
        r#"source <("$LASTBYTE" completions bash)
        COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
        _lastbyte lastbyte "${{COMP_WORDS[COMP_CWORD]}}" "${{COMP_WORDS[COMP_CWORD-1]}}"
        printf '%s\n' "${{COMPREPLY[@]}}""#
    );
    bash.args(["--norc", "-c", &script]);
    let finished = finish(bash);
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""));
    finished.stdout.lines().map(str::to_owned).collect()
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
