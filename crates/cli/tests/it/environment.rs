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

#[test]
fn variables_can_be_set_and_removed_and_setting_wins() {
    let print = r#"echo "$A,${HOME-unset},$B""#;
    let arguments = [
        "--env", "A=1=2", "--env", "A=x=y", "--unset", "HOME", "--unset", "B", "--env", "B=", print,
    ];
    check(&arguments, 0, "x=y,unset,\n", "");
    check(&["--env", "B=set", "--unset", "B", r#"echo "$B""#], 0, "set\n", "");
}
