use lastbyte_testkit::{eventually, is_alive, testchild};

use crate::daemon::Home;
use crate::harness::start;

#[test]
fn a_shutdown_ends_the_server_and_everything_it_ran() {
    let home = Home::new();
    let started =
        home.finish(&["start", "--", lastbyte_testkit::testchild().to_str().unwrap(), "hold"]);
    let pid = started.stderr.split("(pid ").nth(1).unwrap().split(')').next().unwrap();
    home.fixture.anchor.wait_for(1);
    let finished = home.finish(&["shutdown"]);
    let want = format!("lastbyte: stopped the server (pid {pid}); 1 process was running\n");
    assert_eq!((finished.code, finished.stderr), (Some(0), want));
    assert!(!is_alive(pid.parse().unwrap()));
    home.fixture.anchor.wait_for_at_most(0);
    assert_eq!(home.finish(&["stop", "last"]).code, Some(125));
}

#[test]
fn a_shutdown_says_that_nothing_was_running() {
    let home = Home::new();
    let started = home.finish(&["start", "true"]);
    let pid = started.stderr.split("(pid ").nth(1).unwrap().split(')').next().unwrap();
    assert_eq!(home.finish(&["wait", "last"]).code, Some(0));
    let finished = home.finish(&["shutdown"]);
    let want = format!("lastbyte: stopped the server (pid {pid}); nothing was running\n");
    assert_eq!((finished.code, finished.stderr), (Some(0), want));
}

#[test]
fn a_shutdown_as_json_has_no_message() {
    let home = Home::new();
    home.finish(&["start", "true"]);
    let finished = home.finish(&["shutdown", "--json"]);
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""));
    assert!(finished.stdout.starts_with("{\"shut_down\":"), "{finished:?}");
}

/// A home whose server is shutting down and waits for its process; the server's pid.
fn shutting_down() -> (Home, String, std::process::Child) {
    let home = Home::new();
    let child = testchild();
    let hold = ["trap", "15", "print", "told", "then", "hold"];
    let mut arguments = vec!["start", "--grace", "1h", "--", child.to_str().unwrap()];
    arguments.extend(hold);
    let started = home.finish(&arguments);
    let pid = started.stderr.split("(pid ").nth(1).unwrap().split(')').next().unwrap().to_owned();
    home.fixture.anchor.wait_for(1);
    let first = start(home.fixture.lastbyte(&["shutdown"]));
    let socket = home.fixture.home.path().join("runtime/lastbyte/socket");
    eventually("the socket is gone", || !socket.exists());
    (home, pid, first)
}

/// Returns when this program waits for the server's end.
fn until_it_waits(program: &std::process::Child) {
    let folder = format!("/proc/{}/fd", program.id());
    eventually("it waits for the server", || {
        let files = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let mut names = files.filter_map(|file| std::fs::read_link(file.path()).ok());
        names.any(|name| name.to_string_lossy().contains("pidfd"))
    });
}

#[test]
fn a_server_that_is_shutting_down_is_reported_as_such() {
    let (home, pid, mut first) = shutting_down();
    let want = format!(
        "lastbyte: the server (pid {pid}) is shutting down and still stopping its processes\n"
    );
    for arguments in [["ps"].as_slice(), &["show", "last"], &["stop", "last"]] {
        let finished = home.finish(arguments);
        assert_eq!((finished.code, finished.stderr), (Some(125), want.clone()), "{arguments:?}");
    }
    let second = start(home.fixture.lastbyte(&["shutdown"]));
    until_it_waits(&second);
    home.fixture.anchor.tell("exit 0");
    let second = second.wait_with_output().unwrap();
    assert_eq!(second.status.code(), Some(0));
    let want = format!("lastbyte: stopped the server (pid {pid})\n");
    assert_eq!(String::from_utf8_lossy(&second.stderr), want);
    assert!(!is_alive(pid.parse().unwrap()));
    assert_eq!(first.wait().unwrap().code(), Some(0));
}

#[test]
fn a_start_waits_for_a_server_that_is_shutting_down() {
    let (home, pid, mut first) = shutting_down();
    let next = start(home.fixture.lastbyte(&["start", "true"]));
    until_it_waits(&next);
    home.fixture.anchor.tell("exit 0");
    let next = next.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&next.stderr);
    assert_eq!(next.status.code(), Some(0), "{said}");
    assert!(said.starts_with("lastbyte: started the server (pid "), "{said}");
    assert!(!is_alive(pid.parse().unwrap()));
    assert_eq!(first.wait().unwrap().code(), Some(0));
}
