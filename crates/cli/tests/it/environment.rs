use crate::daemon::Daemon;
use crate::harness::{Finished, Fixture, check, finish};

#[test]
fn a_command_runs_where_its_caller_is() {
    let fixture = Fixture::new();
    let folder = fixture.home.path().join("here");
    std::fs::create_dir(&folder).unwrap();
    let mut command = fixture.run_testchild("print-cwd");
    command.current_dir(&folder);
    assert_eq!(finish(command).stdout, folder.to_str().unwrap());
}

#[test]
fn a_relative_directory_starts_at_the_callers() {
    let fixture = Fixture::new();
    std::fs::create_dir_all(fixture.home.path().join("a/b")).unwrap();
    let mut command = fixture.run(&["--cwd", "b", "pwd"]);
    command.current_dir(fixture.home.path().join("a"));
    assert_eq!(
        finish(command).stdout.trim_end(),
        fixture.home.path().join("a/b").to_str().unwrap()
    );
}

/// The server's directory is another: there, `rm -rf *` would remove what nobody meant.
#[test]
fn a_command_does_not_run_elsewhere_if_its_directory_was_removed() {
    let daemon = Daemon::start();
    let call = |arguments: &str| {
        let cd = r#"mkdir "$HOME/gone" && cd "$HOME/gone" && rmdir "$HOME/gone""#;
        finish(daemon.fixture.shell(&format!(r#"{cd} && exec "$LASTBYTE" {arguments}"#)))
    };
    let want = "lastbyte: the current directory no longer exists; choose one with --cwd DIR\n";
    for arguments in ["start pwd", "start --cwd . pwd", "run pwd", "run --cwd a pwd"] {
        let Finished { code, stdout, stderr } = call(arguments);
        assert_eq!((code, stdout.as_str(), stderr.as_str()), (Some(125), "", want), "{arguments}");
    }
    assert_eq!(daemon.result(&["ps", "--json"]), "");
    assert_eq!(call("run --cwd /usr pwd").stdout, "/usr\n");
    let id = call("start --cwd /usr pwd").stdout;
    assert_eq!(daemon.result(&["logs", "-f", id.trim_end()]), "/usr\n");
}

/// The names that `run` and `start` both take from files and from their caller.
const PRINT: &str = r#"echo "$A,$B,$C,${GONE-unset}""#;

#[test]
fn variables_come_from_files_and_from_the_caller() {
    let daemon = Daemon::start();
    let folder = daemon.fixture.home.path();
    let text = "# comment\n\nA=from file\n  B=\"x=y\" $HOME\r\nC\nGONE";
    std::fs::write(folder.join("vars"), text).unwrap();
    std::fs::write(folder.join("more"), "A=later file").unwrap();
    let call = |arguments: &[&str]| {
        let mut command = daemon.fixture.lastbyte(arguments);
        command.env("C", "caller's").current_dir(folder);
        finish(command)
    };
    for verb in ["run", "start"] {
        let with = |options: &[&str]| {
            let printed = call(&[&[verb], options, &[PRINT]].concat()).stdout;
            let is_id = verb == "start";
            if is_id { daemon.result(&["logs", "-f", printed.trim_end()]) } else { printed }
        };
        let want = "from file,\"x=y\" $HOME,caller's,unset\n";
        assert_eq!(with(&["--env-file", "vars", "--unset", "A", "--unset", "C"]), want);
        let both = ["--env-file", "vars", "--env-file", "more", "--env", "B=option"];
        assert_eq!(with(&both), "later file,option,caller's,unset\n");
        assert_eq!(with(&["--env", "C", "--unset", "C", "--env", "GONE"]), ",,caller's,unset\n");
    }
}

#[test]
fn a_file_of_variables_that_cannot_be_read_is_refused_without_its_values() {
    let fixture = Fixture::new();
    std::fs::write(fixture.home.path().join("vars"), "A=1\nexport B=secret\n").unwrap();
    for (file, want) in [
        ("vars", "cannot read the variables in vars: line 2 is not NAME=VALUE or NAME"),
        ("none", "cannot read the variables in none: No such file or directory (os error 2)"),
    ] {
        let mut command = fixture.run(&["--env-file", file, "true"]);
        command.current_dir(fixture.home.path());
        let Finished { code, stderr, .. } = finish(command);
        assert_eq!((code, stderr), (Some(125), format!("lastbyte: {want}\n")));
    }
}

#[test]
fn variables_can_be_set_and_removed_and_setting_wins() {
    let print = r#"echo "$A,${HOME-unset},$B""#;
    let arguments = [
        "--env", "A=1=2", "--env", "A=x=y", "--unset", "HOME", "--unset", "B", "--env", "B=", print,
    ];
    check(&arguments, 0, "x=y,unset,\n", "");
    check(&["--env", "B=set", "--unset", "B", r#"echo "$B""#], 0, "set\n", "");
}
