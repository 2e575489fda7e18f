//! Connections that break while the server runs.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::Child;
use std::sync::{Arc, Mutex};

use lastbyte_testkit::eventually;

use super::{DETACH, TTY, until_raw};
use crate::daemon::Daemon;
use crate::harness::start;
use crate::pty::Pty;

/// A proxy between a client and the server that can cut connections.
struct Cable {
    socket: PathBuf,
    connections: Arc<Mutex<Vec<UnixStream>>>,
    /// The bytes that did not reach the server.
    lost: Arc<Mutex<Vec<u8>>>,
}

impl Cable {
    fn to(daemon: &Daemon) -> Self {
        Self::losing(daemon, usize::MAX)
    }

    /// A proxy that loses everything after the first request of the nth connection.
    fn losing(daemon: &Daemon, nth: usize) -> Self {
        let socket = daemon.fixture.home.path().join("cable");
        let listener = UnixListener::bind(&socket).unwrap();
        let connections: Arc<Mutex<Vec<UnixStream>>> = Arc::default();
        let (server, kept) = (daemon.socket(), Arc::clone(&connections));
        let lost: Arc<Mutex<Vec<u8>>> = Arc::default();
        let loses = Arc::clone(&lost);
        std::thread::spawn(move || {
            for (number, client) in listener.incoming().enumerate() {
                let (client, server) = (client.unwrap(), UnixStream::connect(&server).unwrap());
                let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                if number == nth {
                    lose(from, to, Arc::clone(&loses))
                } else {
                    pass(from, to)
                }
                pass(server, client.try_clone().unwrap());
                kept.lock().unwrap().push(client);
            }
        });
        Self { socket, connections, lost }
    }

    /// The number of connections so far.
    fn count(&self) -> usize {
        self.connections.lock().unwrap().len()
    }

    /// Cuts all connections; returns when the client has made another one, or has exited.
    fn cut(&self, client: &mut Child) {
        let count = self.count();
        for connection in self.connections.lock().unwrap().iter() {
            // It may already be cut.
            _ = connection.shutdown(Shutdown::Both);
        }
        eventually("the client notices", || {
            self.count() > count || client.try_wait().unwrap().is_some()
        });
    }
}

pub(super) fn pass(mut from: UnixStream, mut to: UnixStream) {
    std::thread::spawn(move || {
        // The connection is cut on purpose.
        _ = std::io::copy(&mut from, &mut to);
        _ = to.shutdown(Shutdown::Both);
    });
}

fn lose(mut from: UnixStream, mut to: UnixStream, lost: Arc<Mutex<Vec<u8>>>) {
    std::thread::spawn(move || {
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") {
            from.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        to.write_all(&head).unwrap();
        while from.read(&mut byte).is_ok_and(|count| count > 0) {
            lost.lock().unwrap().push(byte[0]);
        }
    });
}

fn attach_by(cable: &Cable, daemon: &Daemon, id: &str) -> (Pty, Child) {
    let pty = Pty::new(24, 80);
    let socket = cable.socket.to_str().unwrap();
    let child = pty.run(daemon.lastbyte(&["attach", id, "--socket", socket]));
    until_raw(&pty);
    (pty, child)
}

#[test]
fn after_a_reconnect_no_byte_is_missing_or_repeated() {
    let daemon = Daemon::start();
    let cable = Cable::to(&daemon);
    let id = daemon.testchild(&TTY, "cat");
    let (mut pty, mut child) = attach_by(&cable, &daemon, &id);
    for line in ["one", "two", "three"] {
        pty.types(&format!("{line}\r"));
        pty.shows(&format!("{line}\r\n{line}\r\n"));
        assert_eq!(pty.seen, "");
        cable.cut(&mut child);
    }
    pty.types("\x04");
    assert_eq!(pty.ends(child), Some(0));
    // In the middle of the session it would spoil the screen.
    let told = "lastbyte: the connection to the server was lost; reconnected\r\n\
                lastbyte: the process has ended: exit 0\r\n";
    assert_eq!(pty.seen, told);
    let log = daemon.result(&["logs", &id]);
    assert_eq!(log, "one\r\none\r\ntwo\r\ntwo\r\nthree\r\nthree\r\n");
}

#[test]
fn a_lost_end_of_input_is_sent_again() {
    let daemon = Daemon::start();
    // The first connection only looks up the process.
    let cable = Cable::losing(&daemon, 1);
    let id = daemon.testchild(&["--stdin-open"], "cat then exit 3");
    let socket = cable.socket.to_str().unwrap();
    let mut child = start(daemon.lastbyte(&["attach", &id, "--socket", socket]));
    eventually("the end is lost", || !cable.lost.lock().unwrap().is_empty());
    cable.cut(&mut child);
    eventually("the program ends", || child.try_wait().unwrap().is_some());
    let output = child.wait_with_output().unwrap();
    let told = b"lastbyte: the connection to the server was lost; reconnected\n";
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(3), &told[..]));
}

#[test]
fn it_gives_up_if_input_may_be_lost() {
    let daemon = Daemon::start();
    let cable = Cable::to(&daemon);
    let id = daemon.testchild(&TTY, "cat");
    let (mut pty, mut child) = attach_by(&cable, &daemon, &id);
    pty.types("ours\r");
    pty.shows("ours\r\nours\r\n");
    daemon.result(&["write", &id, "--line", "theirs"]);
    pty.shows("theirs\r\ntheirs\r\n");
    cable.cut(&mut child);
    assert_eq!(pty.ends(child), Some(125));
    let told = format!(
        "lastbyte: the connection broke, and your last input may not have arrived; \
         continue with `lastbyte attach {} --from 28`\r\n",
        &id[28..]
    );
    assert_eq!(pty.seen, told);
    assert!(pty.is_as_before());
}

#[test]
fn the_detach_key_works_while_it_reconnects() {
    let daemon = Daemon::start();
    let cable = Cable::to(&daemon);
    let id = daemon.testchild(&TTY, "hold");
    let (mut pty, mut child) = attach_by(&cable, &daemon, &id);
    daemon.stop();
    cable.cut(&mut child);
    pty.types(DETACH);
    assert_eq!(pty.ends(child), Some(0));
    assert!(pty.is_as_before());
    daemon.resume();
}

#[test]
fn it_gives_up_on_a_server_that_drops_every_connection() {
    let daemon = Daemon::start();
    let cable = Cable::to(&daemon);
    let id = daemon.testchild(&TTY, "hold");
    let (mut pty, mut child) = attach_by(&cable, &daemon, &id);
    while child.try_wait().unwrap().is_none() {
        cable.cut(&mut child);
    }
    assert_eq!(pty.ends(child), Some(125));
    assert!(pty.is_as_before(), "{:?}", pty.seen);
}
