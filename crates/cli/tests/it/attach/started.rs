//! `start --attach`.

use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use lastbyte_testkit::eventually;

use super::reconnect::pass;
use crate::daemon::Daemon;
use crate::pty::Pty;

#[test]
fn a_new_process_is_shown_from_its_first_byte() {
    let daemon = Daemon::start();
    let socket = daemon.fixture.home.path().join("slow");
    let listener = UnixListener::bind(&socket).unwrap();
    let mut pty = Pty::new(24, 80);
    let start = ["start", "--attach", "--key", "once", "seq 100"];
    let slow = ["--socket", socket.to_str().unwrap()];
    let child = pty.run(daemon.lastbyte(&[&start[..4], &slow, &start[4..]].concat()));
    let server = daemon.socket();
    connect(listener.accept().unwrap().0, &server);
    // All output is in the log before the client reads any of it.
    eventually("it ends", || daemon.finish(&["wait", "last"]).code == Some(0));
    std::thread::spawn(move || {
        listener.incoming().for_each(|client| connect(client.unwrap(), &server));
    });
    assert_eq!(pty.ends(child), Some(0));
    let lines = (1..=100).map(|line| format!("{line}\r\n")).collect::<String>();
    assert!(pty.seen.contains(&lines), "{:?}", pty.seen);
}

#[test]
fn a_process_found_by_its_key_is_shown_from_its_last_screen() {
    let daemon = Daemon::start();
    let start = ["start", "--attach", "--key", "once", "seq 100"];
    for first in [true, false] {
        let mut pty = Pty::new(24, 80);
        let child = pty.run(daemon.lastbyte(&start));
        assert_eq!(pty.ends(child), Some(0));
        assert_eq!(pty.seen.contains("78\r\n"), first, "{:?}", pty.seen);
        assert!(pty.seen.contains("79\r\n"), "{:?}", pty.seen);
    }
}

fn connect(client: UnixStream, server: &Path) {
    let server = UnixStream::connect(server).unwrap();
    pass(client.try_clone().unwrap(), server.try_clone().unwrap());
    pass(server, client);
}
