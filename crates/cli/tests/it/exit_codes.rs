use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::harness::{Fixture, check, finish};

#[test]
fn the_exit_code_is_the_commands_own() {
    for code in [0, 1, 3, 124, 125, 126, 127, 255] {
        check(&[&format!("exit {code}")], code, "", "");
    }
}

#[test]
fn a_signal_is_reported_as_128_plus_its_number() {
    for signal in [1, 2, 9, 13, 15] {
        check(&[&format!("kill -{signal} $$")], 128 + signal, "", "");
    }
}

#[test]
fn a_missing_program_is_127() {
    let text = "No such file or directory (os error 2)\n";
    let bare = "lastbyte: \"no-such-program\" was not found in PATH\n";
    check(&["--", "no-such-program"], 127, "", bare);
    for program in ["./no-such-program", "/dev/null/no-such-program"] {
        check(&["--", program], 127, "", &format!("lastbyte: cannot run {program:?}: {text}"));
    }
}

#[test]
fn a_program_that_cannot_be_executed_is_126() {
    let fixture = Fixture::new();
    for (name, content, mode, why) in [
        ("not-executable", "#!/bin/sh\n", 0o644, ": Permission denied (os error 13)"),
        (
            "no-format",
            "\u{1}\u{2}",
            0o755,
            ": Exec format error (os error 8); if it is a script, it needs a #! line",
        ),
        (
            "no-interpreter",
            "#!/no/such/interpreter\n",
            0o755,
            ": its interpreter is missing: No such file or directory (os error 2)",
        ),
    ] {
        let path = fixture.home.path().join(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        let path = path.to_str().unwrap();
        let finished = finish(fixture.run(&["--", path]));
        assert_eq!(finished.code, Some(126), "{name}");
        assert_eq!(finished.stderr, format!("lastbyte: cannot run {path:?}{why}\n"));
    }
}

#[test]
fn a_directory_as_program_is_126() {
    check(&["--", "/usr"], 126, "", "lastbyte: cannot run \"/usr\": it is a directory\n");
}

#[test]
fn a_missing_directory_is_125_and_named() {
    let advice = "; --cwd needs a directory that you can enter\n";
    let why = format!("No such file or directory (os error 2){advice}");
    let text = format!("lastbyte: cannot use the working directory /no/such/folder: {why}");
    check(&["--cwd", "/no/such/folder", "true"], 125, "", &text);
    let why = format!("Not a directory (os error 20){advice}");
    let text = format!("lastbyte: cannot use the working directory /dev/null: {why}");
    check(&["--cwd", "/dev/null", "true"], 125, "", &text);
}
