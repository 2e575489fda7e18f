//! The terminal is restored, however an attach ends.

use std::process::Child;

use lastbyte_testkit::eventually;
use rustix::process::{Pid, Signal, WaitOptions, waitpid};

use super::{DETACH, TTY, attach, attached, until_raw};
use crate::daemon::Daemon;
use crate::harness::{send, sockets_of};

/// The modes that an editor sets, and what undoes them.
const BUSY: &str = r"print \x1b[?1049h\x1b[?1h\x1b=\x1b[?1000h\x1b[?2004h\x1b[?25l\x1b[>4;2mtext";
const UNDONE: &str = "\x1b[?1049l\x1b>\x1b[>4m\x1b[?1000l\x1b[?1l\x1b[?2004l\x1b[?25h\x1b[m";

#[test]
fn the_terminal_is_restored_when_the_server_is_killed() {
    let mut daemon = Daemon::start();
    let id = daemon.testchild(&TTY, &format!("{BUSY} then hold"));
    daemon.fixture.anchor.wait_for(1);
    let (mut pty, child) = attached(&daemon, &id);
    pty.shows("\x1b[?1049h");
    daemon.kill();
    assert_eq!(pty.ends(child), Some(125));
    let told = "lastbyte: the server is gone; what happened to the process is unknown\r\n";
    assert!(pty.seen.ends_with(&format!("{UNDONE}{told}")), "{:?}", pty.seen);
    assert!(pty.is_as_before());
}

#[test]
fn a_signal_restores_the_terminal_and_leaves_the_process_running() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&TTY, &format!("{BUSY} then hold"));
    daemon.fixture.anchor.wait_for(1);
    for (signal, code) in
        [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::INT, 130), (Signal::QUIT, 131)]
    {
        let (mut pty, child) = attached(&daemon, &id);
        pty.shows("\x1b[?1049h");
        send(&child, signal);
        assert_eq!(pty.ends(child), Some(code));
        let told = "; the process keeps running\r\n";
        assert!(pty.seen.ends_with(told) && pty.seen.contains(UNDONE), "{:?}", pty.seen);
        assert!(pty.is_as_before(), "{signal:?}");
    }
    daemon.fixture.anchor.wait_for(1);
}

#[test]
fn a_full_screen_program_is_shown_from_its_screen_and_redraws() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&TTY, &format!("{BUSY} then print-winsize-on-winch then hold"));
    daemon.result(&["wait", &id, "--pattern", "ready", "--timeout", "60s"]);
    // The same size as the process has, so it would not notice the new client by itself.
    let (mut pty, child) = attached(&daemon, &id);
    let modes = ["\x1b=", "\x1b[?1h", "\x1b[?2004h", "\x1b[?1000h", "\x1b[>4;2m"];
    ["\x1b[?1049h", "text"].into_iter().chain(modes).for_each(|shown| pty.shows(shown));
    pty.shows(" 80\r\n");
    // The key as a terminal reports it when modifyOtherKeys is on.
    pty.types("\x1b[27;5;92~");
    assert_eq!(pty.ends(child), Some(0));
    assert!(pty.seen.contains(UNDONE) && pty.is_as_before(), "{:?}", pty.seen);
    daemon.fixture.anchor.tell("winsize");
    daemon.result(&["wait", &id, "--pattern", "24 80", "--timeout", "60s"]);
}

fn returns_with(id: &str) -> String {
    format!("; return with `lastbyte attach {}`\r\n", &id[28..])
}

#[test]
fn the_detach_key_works_while_output_floods() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&TTY, "flood");
    let (mut pty, child) = attach(&daemon, &id, &["--from", "0"]);
    until_raw(&pty);
    pty.shows_bytes(200_000);
    pty.types(DETACH);
    assert_eq!(pty.ends(child), Some(0));
    assert!(pty.seen.ends_with(&returns_with(&id)) && pty.is_as_before());
}

#[test]
fn the_detach_key_works_while_the_terminal_is_blocked() {
    let daemon = Daemon::start();
    let busy = BUSY.strip_prefix("print ").unwrap().replace(r"\x1b", r"\033");
    let flood = format!("printf '{busy}'; exec yes");
    let id = daemon.result(&[&["start"], TTY.as_slice(), &[&flood]].concat()).trim_end().to_owned();
    let (mut pty, mut child) = attach(&daemon, &id, &["--from", "0"]);
    until_raw(&pty);
    pty.shows("text");
    pty.until_full();
    pty.types(DETACH);
    assert_eq!(exit_code(&mut child), Some(0));
    assert!(pty.is_as_before());
    // It is restored as soon as it accepts output again.
    pty.shows(UNDONE);
    pty.shows(&returns_with(&id));
}

#[test]
fn output_for_a_blocked_terminal_is_kept_when_the_process_ends() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&TTY, &format!("{BUSY} then hold"));
    let (mut pty, child) = attach(&daemon, &id, &["--from", "0"]);
    until_raw(&pty);
    pty.shows("text");
    let filled = pty.fill();
    daemon.fixture.anchor.tell("exit 9");
    // Another client sees the ending, too, and later.
    daemon.finish(&["wait", &id, "--timeout", "60s"]);
    assert_eq!(daemon.finish(&["attach", &id]).code, Some(9));
    // More keys than the client queues.
    (0..10).for_each(|_| pty.types("x"));
    pty.shows(&format!("{filled}{UNDONE}"));
    assert_eq!(pty.ends(child), Some(9));
    assert!(pty.seen.contains("the process has ended: exit 9\r\n"), "{:?}", pty.seen);
    assert!(pty.is_as_before());
}

#[test]
fn the_detach_key_works_after_the_end_while_the_terminal_is_blocked() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&TTY, &format!("{BUSY} then hold"));
    let (mut pty, mut child) = attach(&daemon, &id, &["--from", "0"]);
    until_raw(&pty);
    pty.shows("text");
    pty.fill();
    let connected = sockets_of(child.id());
    daemon.fixture.anchor.tell("exit 9");
    // It disconnects when it has the ending.
    eventually("it has the ending", || sockets_of(child.id()) < connected);
    pty.types(DETACH);
    assert_eq!(exit_code(&mut child), Some(9));
    assert!(pty.is_as_before());
    pty.shows(UNDONE);
}

/// Waits for the exit without reading the terminal.
fn exit_code(child: &mut Child) -> Option<i32> {
    eventually("the program ends", || child.try_wait().unwrap().is_some());
    child.wait().unwrap().code()
}

#[test]
fn a_suspended_client_restores_the_terminal_until_it_continues() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&TTY, &format!("{BUSY} then cat"));
    daemon.result(&["wait", &id, "--pattern", "text", "--timeout", "60s"]);
    let (mut pty, child) = attached(&daemon, &id);
    pty.shows("\x1b[?1049h");
    send(&child, Signal::TSTP);
    until_stopped(&child);
    assert!(pty.is_as_before());
    pty.shows(UNDONE);
    send(&child, Signal::CONT);
    pty.shows("\x1b[?1049h");
    until_raw(&pty);
    pty.types("on\r");
    pty.shows("on\r\non\r\n");
    pty.types(DETACH);
    assert_eq!(pty.ends(child), Some(0));
    assert!(pty.is_as_before());
}

#[test]
fn a_client_stopped_by_sigstop_turns_no_mode_on_twice() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&TTY, r"print \x1b[>1utext then hold");
    let (mut pty, child) = attach(&daemon, &id, &["--from", "0"]);
    until_raw(&pty);
    pty.shows("\x1b[>1utext");
    send(&child, Signal::STOP);
    until_stopped(&child);
    send(&child, Signal::CONT);
    eventually("it goes on", || pty.has_shown("\x1b[>1u"));
    pty.types(DETACH);
    assert_eq!(pty.ends(child), Some(0));
    let count = |what| pty.seen.matches(what).count();
    assert_eq!((count("\x1b[>1u"), count("\x1b[<1u")), (1, 2), "{:?}", pty.seen);
    assert!(pty.is_as_before());
}

fn until_stopped(child: &Child) {
    let pid = Pid::from_child(child);
    let mut stopped = false;
    eventually("the program stops", || {
        let options = WaitOptions::UNTRACED | WaitOptions::NOHANG;
        let status = waitpid(Some(pid), options).unwrap();
        stopped |= status.is_some_and(|(_, status)| status.stopped());
        stopped
    });
}

#[test]
fn a_closed_terminal_ends_the_attach_and_not_the_process() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&TTY, "print up then hold");
    let (pty, mut child) = attached(&daemon, &id);
    drop(pty);
    assert_eq!(exit_code(&mut child), Some(129));
    daemon.fixture.anchor.wait_for(1);
}
