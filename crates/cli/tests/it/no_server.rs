use std::path::PathBuf;

use crate::daemon::Home;
use crate::harness::{Finished, Fixture, finish};

/// A home whose server has ended, after a process that wrote a line and exited with 3; its socket.
fn home_with_history() -> (Home, PathBuf) {
    let home = Home::new();
    let socket = home.fixture.home.path().join("runtime/lastbyte/socket");
    assert_eq!(home.finish(&["start", "--name", "web", "echo kept; exit 3"]).code, Some(0));
    assert_eq!(home.finish(&["wait", "web"]).code, Some(3));
    assert_eq!(home.finish(&["shutdown"]).code, Some(0));
    (home, socket)
}

#[test]
fn what_an_earlier_server_left_is_read_by_a_new_one() {
    let (home, socket) = home_with_history();
    for (arguments, code, wanted) in [
        (["ps"].as_slice(), 0, "web"),
        (&["show", "web"], 0, "exit 3"),
        (&["logs", "web"], 0, "kept\n"),
        (&["search", "web", "kept"], 0, "0:kept\n"),
        (&["wait", "web"], 3, ""),
        (&["forget", "--all"], 0, "web  forgotten\n"),
    ] {
        let Finished { code: found, stdout, stderr } = home.finish(arguments);
        assert_eq!(found, Some(code), "{arguments:?}: {stderr}");
        assert!(stdout.contains(wanted), "{arguments:?}: {stdout}");
        let said = stderr.strip_prefix("lastbyte: started the server (pid ");
        let said = said.and_then(|said| said.split_once(')')).map(|(_, said)| said);
        assert_eq!(said, Some(&*format!(", socket {}\n", socket.display())), "{arguments:?}");
        assert_eq!(home.finish(arguments).stderr.find("started"), None, "it is found next time");
        assert_eq!(home.finish(&["shutdown"]).code, Some(0));
    }
}

#[test]
fn a_command_for_what_is_running_starts_no_server() {
    let (home, socket) = home_with_history();
    for arguments in [
        ["stop", "web"].as_slice(),
        &["signal", "web", "TERM"],
        &["write", "web", "x"],
        &["attach", "web"],
        &["events"],
        &["shutdown"],
    ] {
        let Finished { code, stderr, .. } = home.finish(arguments);
        assert_eq!(code, Some(125), "{arguments:?}");
        let no_server = format!("lastbyte: no server is running at {}; ", socket.display());
        assert!(stderr.starts_with(&no_server), "{arguments:?}: {stderr}");
        assert!(!socket.exists(), "{arguments:?}");
    }
}

/// The server may be on another machine, behind a forwarded socket.
#[test]
fn a_reader_of_a_named_socket_starts_no_server() {
    let (home, _) = home_with_history();
    let named = home.fixture.home.path().join("elsewhere");
    let mut by_variable = home.fixture.lastbyte(&["ps"]);
    by_variable.env("LASTBYTE_SOCKET", &named);
    let by_flag = home.fixture.lastbyte(&["ps", "--socket", named.to_str().unwrap()]);
    for command in [by_flag, by_variable] {
        let Finished { code, stderr, .. } = finish(command);
        let want = format!("lastbyte: no server is running at {}; ", named.display());
        assert_eq!((code, stderr.starts_with(&want)), (Some(125), true), "{stderr}");
        assert!(!named.exists());
    }
}

#[test]
fn a_reader_of_a_state_folder_that_is_not_there_makes_none() {
    let (home, _) = home_with_history();
    let folder = home.fixture.home.path().join("misspelt");
    let finished = home.finish(&["ps", "--state", folder.to_str().unwrap()]);
    assert_eq!(finished.code, Some(125), "{finished:?}");
    assert!(!folder.exists());
}

#[test]
fn a_newcomer_who_looks_first_sees_that_nothing_has_run() {
    let home = Home::new();
    let Finished { code, stdout, stderr } = home.finish(&["ps"]);
    assert_eq!(
        (code, stdout.lines().count()),
        (Some(0), 1),
        "a line that names the columns: {stdout}"
    );
    assert!(stderr.starts_with("lastbyte: started the server (pid "), "{stderr}");
    assert_eq!(home.finish(&["ps", "--json"]).stdout, "");
    assert_eq!(home.finish(&["shutdown"]).code, Some(0));
}

#[test]
fn a_command_for_what_is_running_says_how_to_start_something() {
    let home = Home::new();
    let socket = home.fixture.home.path().join("runtime/lastbyte/socket");
    let no_server = format!("lastbyte: no server is running at {}; ", socket.display());
    let starts = "`lastbyte ps` starts one and shows what an earlier one has left\n";
    for (arguments, advice) in
        [(["stop", "last"].as_slice(), starts), (&["shutdown"], "nothing to stop\n")]
    {
        let Finished { code, stdout, stderr } = home.finish(arguments);
        assert_eq!((code, stdout.as_str()), (Some(125), ""), "{arguments:?}");
        assert_eq!(stderr, format!("{no_server}{advice}"), "{arguments:?}");
    }
    assert!(!socket.exists());
}

#[test]
fn the_hint_names_the_server_that_was_given() {
    for (option, place, socket) in
        [("--state", "/no/such", "/no/such/socket"), ("--socket", "/no/such.sock", "/no/such.sock")]
    {
        let finished = finish(Fixture::new().lastbyte(&["ps", option, place]));
        let want = format!(
            "lastbyte: no server is running at {socket}; `lastbyte start {option} {place} 'COMMAND'` \
             starts one\n"
        );
        assert_eq!((finished.code, finished.stderr), (Some(125), want));
    }
}

#[test]
fn a_server_on_a_port_is_never_started() {
    let fixture = Fixture::new();
    // A port that was free a moment ago, and that nobody else gets soon.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", taken.local_addr().unwrap());
    drop(taken);
    let finished = finish(fixture.lastbyte(&["start", "--server", &url, "true"]));
    let address = url.strip_prefix("http://").unwrap();
    let want = format!(
        "lastbyte: no server is running at {url}; `lastbyte serve --listen {address}` starts one\n"
    );
    assert_eq!((finished.code, finished.stderr), (Some(125), want));
}

#[test]
fn every_command_has_help_with_its_exit_codes() {
    for command in
        ["start", "ps", "show", "logs", "wait", "write", "signal", "stop", "forget", "events"]
    {
        let finished = finish(Fixture::new().lastbyte(&[command, "--help"]));
        assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{command}");
        for text in
            [&*format!("Usage: lastbyte {command}"), "--socket <PATH>", "Exit codes:", "  125 "]
        {
            assert!(finished.stdout.contains(text), "{text:?} is not in\n{}", finished.stdout);
        }
    }
}
