use crate::harness::{Finished, Fixture, finish};

#[test]
fn a_command_that_only_reads_starts_no_server() {
    let fixture = Fixture::new();
    let socket = fixture.home.path().join("runtime/lastbyte/socket");
    let no_server = format!("lastbyte: no server is running at {}; ", socket.display());
    let starts = "`lastbyte start 'COMMAND'` starts one\n";
    for (arguments, advice) in [
        (["ps"].as_slice(), starts),
        (&["logs", "last"], starts),
        (&["show", "x"], starts),
        (&["stop", "last"], starts),
        (&["shutdown"], "nothing to stop\n"),
    ] {
        let Finished { code, stdout, stderr } = finish(fixture.lastbyte(arguments));
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
