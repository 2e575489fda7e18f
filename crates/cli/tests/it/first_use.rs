use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::daemon::Home;
use crate::harness::{Finished, LASTBYTE, finish};

fn socket(home: &Home) -> String {
    home.fixture.home.path().join("runtime/lastbyte/socket").display().to_string()
}

#[test]
fn the_first_start_starts_the_server_and_says_so_once() {
    let home = Home::new();
    let first = home.finish(&["start", "true"]);
    assert_eq!(first.code, Some(0), "{first:?}");
    let said = first.stderr.strip_prefix("lastbyte: started the server (pid ").unwrap();
    let (pid, rest) = said.split_once(')').unwrap();
    assert_eq!(rest, format!(", socket {}\n", socket(&home)));
    assert!(lastbyte_testkit::is_alive(pid.parse().unwrap()));
    let second = home.finish(&["start", "true"]);
    assert_eq!((second.code, second.stderr.as_str()), (Some(0), ""));
}

#[test]
fn a_start_in_a_command_substitution_does_not_wait_for_the_process() {
    let home = Home::new();
    let script = r#"id=$("$LASTBYTE" start -- "$TESTCHILD" hold 2>&1); echo "got $id""#;
    let Finished { code, stdout, stderr } = finish(home.fixture.shell(script));
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert!(stdout.starts_with("got lastbyte: started the server"), "{stdout}");
    home.fixture.anchor.wait_for(1);
}

#[test]
fn ten_first_starts_at_once_start_one_server() {
    let home = Home::new();
    let starts = std::thread::scope(|scope| {
        let start = || scope.spawn(|| home.finish(&["start", "--", &LASTBYTE, "--version"]));
        let starts: Vec<_> = (0..10).map(|_| start()).collect();
        starts.into_iter().map(|start| start.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(starts.iter().all(|start| start.code == Some(0)), "{starts:#?}");
    let said = starts.iter().filter(|start| start.stderr.contains("started the server")).count();
    assert_eq!(said, 1, "{starts:#?}");
    assert_eq!(home.finish(&["ps", "--json"]).stdout.lines().count(), 10);
}

#[test]
fn the_error_of_a_server_that_cannot_start_is_shown() {
    let home = Home::new();
    let finished = home.finish(&["start", "--socket", "/proc/nowhere/socket", "true"]);
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(125), ""), "{finished:?}");
    assert!(finished.stderr.starts_with("lastbyte: the server did not start: "), "{finished:?}");
    assert!(finished.stderr.contains("/proc/nowhere"), "{finished:?}");
}

/// Writes a log as an earlier server would have left it.
fn leave_log(home: &Home, text: &str) -> PathBuf {
    let state = home.fixture.home.path().join("state/lastbyte");
    fs::create_dir_all(&state).unwrap();
    fs::set_permissions(&state, Permissions::from_mode(0o700)).unwrap();
    fs::write(state.join("daemon.log"), text).unwrap();
    state
}

#[test]
fn a_large_log_is_renamed_by_the_next_start() {
    let home = Home::new();
    let large = "x".repeat((1 << 20) + 1);
    let state = leave_log(&home, &large);
    fs::write(state.join("daemon.log.1"), "older").unwrap();
    assert_eq!(home.finish(&["start", "true"]).code, Some(0));
    assert!(fs::read_to_string(state.join("daemon.log.1")).unwrap() == large);
    assert!(!fs::read_to_string(state.join("daemon.log")).unwrap().contains(&large));
}

#[test]
fn a_small_log_is_continued() {
    let home = Home::new();
    let small = "x".repeat(1 << 20);
    let state = leave_log(&home, &small);
    assert_eq!(home.finish(&["start", "true"]).code, Some(0));
    assert!(fs::read_to_string(state.join("daemon.log")).unwrap().starts_with(&small));
    assert!(!state.join("daemon.log.1").exists());
}

#[test]
fn the_server_gets_few_of_the_callers_variables() {
    let home = Home::new();
    let mut command = home.fixture.lastbyte(&["start", "true"]);
    command.env("SECRET_OF_CALLER", "x");
    assert_eq!(finish(command).code, Some(0));
    // A command has what the server has: nobody can look into the server itself.
    assert_eq!(home.finish(&["start", "env"]).code, Some(0));
    assert_eq!(home.finish(&["wait", "last"]).code, Some(0));
    let environ = home.finish(&["logs", "last"]).stdout;
    assert!(environ.contains("HOME="), "{environ}");
    assert!(!environ.contains("SECRET_OF_CALLER"), "{environ}");
}

/// The server logs less than by default, but the commands it runs do not inherit that.
#[test]
fn a_command_gets_no_setting_of_a_server_that_was_started_on_first_use() {
    let home = Home::new();
    let mut command = home.fixture.lastbyte(&["start", "env"]);
    command.env_remove("LASTBYTE_LOG");
    let first = finish(command);
    assert_eq!(home.finish(&["wait", "last"]).code, Some(0));
    let environ = home.finish(&["logs", "last"]).stdout;
    assert!(environ.contains("HOME="), "{environ}");
    assert!(!environ.contains("LASTBYTE_LOG"), "{environ}");
    let pid = first.stderr.split("(pid ").nth(1).unwrap().split(')').next().unwrap();
    let cmdline = fs::read(format!("/proc/{pid}/cmdline")).unwrap();
    let cmdline = String::from_utf8_lossy(&cmdline);
    assert!(cmdline.contains("--log\0warn"), "{cmdline}");
}

/// The default path of the socket depends on a variable that a service or `sudo` does not have.
#[test]
fn a_server_is_found_without_the_variable_that_placed_its_socket() {
    let home = Home::new();
    let id = home.finish(&["start", "true"]).stdout;
    let without = |arguments: &[&str]| {
        let mut command = home.fixture.lastbyte(arguments);
        command.env_remove("XDG_RUNTIME_DIR");
        finish(command)
    };
    let listed = without(&["ps", "--json"]);
    assert_eq!((listed.code, listed.stderr.as_str()), (Some(0), ""));
    assert!(listed.stdout.contains(id.trim_end()), "{listed:?}");
    let second = without(&["start", "true"]);
    assert_eq!((second.code, second.stderr.as_str()), (Some(0), ""));
    assert_eq!(without(&["shutdown"]).code, Some(0));
    assert!(!home.fixture.home.path().join("state/lastbyte/address").exists());
}

/// For users without a home directory, as in many containers.
#[test]
fn the_error_about_a_state_folder_names_the_options_to_change_it() {
    let home = Home::new();
    for arguments in [["start", "true"].as_slice(), &["serve"]] {
        let mut command = home.fixture.lastbyte(arguments);
        command.env("XDG_STATE_HOME", "/proc/self").env_remove("XDG_RUNTIME_DIR");
        let finished = finish(command);
        let want = "lastbyte: cannot use state directory /proc/self/lastbyte: No such file or \
                    directory (os error 2); choose another with --state DIR or LASTBYTE_STATE\n";
        assert_eq!((finished.code, finished.stderr.as_str()), (Some(125), want), "{arguments:?}");
    }
}

#[test]
fn a_state_folder_that_is_a_file_is_refused() {
    let home = Home::new();
    for command in [["start", "true"].as_slice(), &["serve"]] {
        let arguments = [command, &["--state", "/etc/passwd"]].concat();
        let finished = home.finish(&arguments);
        let want = "lastbyte: cannot use state directory /etc/passwd: it is not a directory; \
                    choose another with --state DIR or LASTBYTE_STATE\n";
        assert_eq!((finished.code, finished.stderr.as_str()), (Some(125), want), "{arguments:?}");
    }
}

/// They are the caller's, although only the server uses them.
#[test]
fn invalid_settings_of_the_server_are_an_invalid_call() {
    let home = Home::new();
    for (name, value) in [("LASTBYTE_LISTEN", "foo"), ("LASTBYTE_LOG", "loud")] {
        let mut command = home.fixture.lastbyte(&["start", "true"]);
        command.env(name, value);
        let finished = finish(command);
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(2), ""), "{finished:?}");
        assert!(finished.stderr.starts_with(&format!("lastbyte: {name}: ")), "{finished:?}");
    }
}

#[test]
fn a_state_folder_that_others_can_write_to_is_refused() {
    let home = Home::new();
    let folder = home.fixture.home.path().join("open");
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o770)).unwrap();
    let state = folder.to_str().unwrap();
    for arguments in [["start", "--state", state, "true"].as_slice(), &["serve", "--state", state]]
    {
        let finished = home.finish(arguments);
        let want = format!(
            "lastbyte: cannot use state directory {state}: other users can write to it; \
             run `chmod go-w {state}`, or choose another with --state DIR or LASTBYTE_STATE\n"
        );
        assert_eq!((finished.code, finished.stderr), (Some(125), want), "{arguments:?}");
    }
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
}
