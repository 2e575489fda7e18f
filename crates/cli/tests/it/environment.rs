use crate::harness::{Fixture, check, finish};

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

#[test]
fn a_command_can_run_in_a_removed_directory() {
    let fixture = Fixture::new();
    let script = r#"mkdir "$HOME/gone" && cd "$HOME/gone" && rmdir "$HOME/gone" && exec "$LASTBYTE" run 'echo ran'"#;
    let finished = finish(fixture.shell(script));
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(0), "ran\n"));
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
