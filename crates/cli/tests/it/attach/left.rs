//! The terminal is as it was, however it comes to be left.

use std::process::Child;

use rustix::process::{Pid, Signal, WaitOptions, waitpid};

use super::{DETACH, TTY, attach, attached, until_raw};
use crate::daemon::Daemon;
use crate::harness::send;

/// What an editor makes of a terminal, and what undoes it.
const BUSY: &str = r"print \x1b[?1049h\x1b[?1h\x1b=\x1b[?1000h\x1b[?2004h\x1b[?25l\x1b[>4;2mtext";
const UNDONE: &str = "\x1b[?1049l\x1b>\x1b[>4m\x1b[?1000l\x1b[?1l\x1b[?2004l\x1b[?25h\x1b[m";

#[test]
fn a_server_that_is_killed_leaves_the_terminal_in_order() {
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
fn a_signal_leaves_the_terminal_in_order_and_the_process_running() {
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
fn a_program_that_has_the_screen_finds_it_again_and_draws_it() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&TTY, &format!("{BUSY} then print-winsize-on-winch then hold"));
    daemon.result(&["wait", &id, "--pattern", "ready", "--timeout", "60s"]);
    // Of the size that the process has: it would not notice that somebody is there.
    let (mut pty, child) = attached(&daemon, &id);
    pty.shows("\x1b[?1049h\x1b[H\x1b[2J\x1b=\x1b[>4;2m\x1b[?1000h\x1b[?1h\x1b[?2004h\x1b[?25l");
    pty.shows(" 80\r\n");
    // The key as a terminal reports it that was asked to tell keys apart.
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
    pty.shows_so_much(200_000);
    pty.types(DETACH);
    assert_eq!(pty.ends(child), Some(0));
    assert!(pty.seen.ends_with(&returns_with(&id)) && pty.is_as_before());
}

#[test]
fn the_detach_key_works_while_the_terminal_takes_nothing() {
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
    // It is put in order as soon as it takes something again.
    pty.shows(UNDONE);
    pty.shows(&returns_with(&id));
}

#[test]
fn the_end_of_a_process_throws_nothing_away_that_a_terminal_has_yet_to_take() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&TTY, &format!("{BUSY} then hold"));
    let (mut pty, child) = attach(&daemon, &id, &["--from", "0"]);
    until_raw(&pty);
    pty.shows("text");
    let filled = pty.fill();
    daemon.fixture.anchor.tell("exit 9");
    // Somebody else who is attached sees the end as well, and later.
    daemon.finish(&["wait", &id, "--timeout", "60s"]);
    assert_eq!(daemon.finish(&["attach", &id]).code, Some(9));
    // More keys than are kept for a process.
    (0..10).for_each(|_| pty.types("x"));
    pty.shows(&format!("{filled}{UNDONE}"));
    assert_eq!(pty.ends(child), Some(9));
    assert!(pty.seen.contains("the process has ended: exit 9\r\n"), "{:?}", pty.seen);
    assert!(pty.is_as_before());
}

#[test]
fn the_end_of_a_process_can_be_left_while_the_terminal_takes_nothing() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&TTY, &format!("{BUSY} then hold"));
    let (mut pty, mut child) = attach(&daemon, &id, &["--from", "0"]);
    until_raw(&pty);
    pty.shows("text");
    pty.fill();
    daemon.fixture.anchor.tell("exit 9");
    daemon.finish(&["wait", &id, "--timeout", "60s"]);
    assert_eq!(daemon.finish(&["attach", &id]).code, Some(9));
    pty.types(DETACH);
    assert_eq!(exit_code(&mut child), Some(9));
    assert!(pty.is_as_before());
    pty.shows(UNDONE);
}

/// Without a reader of what it shows.
fn exit_code(child: &mut Child) -> Option<i32> {
    lastbyte_testkit::eventually("the program ends", || child.try_wait().unwrap().is_some());
    child.wait().unwrap().code()
}

#[test]
fn a_client_that_is_stopped_gives_the_terminal_back_until_it_goes_on() {
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
fn a_client_that_is_stopped_without_being_asked_leaves_nothing_turned_on_twice() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&TTY, r"print \x1b[>1utext then hold");
    let (mut pty, child) = attach(&daemon, &id, &["--from", "0"]);
    until_raw(&pty);
    pty.shows("\x1b[>1utext");
    send(&child, Signal::STOP);
    until_stopped(&child);
    send(&child, Signal::CONT);
    lastbyte_testkit::eventually("it goes on", || pty.has_shown("\x1b[>1u"));
    pty.types(DETACH);
    assert_eq!(pty.ends(child), Some(0));
    let count = |what| pty.seen.matches(what).count();
    assert_eq!((count("\x1b[>1u"), count("\x1b[<1u")), (1, 2), "{:?}", pty.seen);
    assert!(pty.is_as_before());
}

fn until_stopped(child: &Child) {
    let pid = Pid::from_child(child);
    let mut stopped = false;
    lastbyte_testkit::eventually("the program stops", || {
        let options = WaitOptions::UNTRACED | WaitOptions::NOHANG;
        let status = waitpid(Some(pid), options).unwrap();
        stopped |= status.is_some_and(|(_, status)| status.stopped());
        stopped
    });
}

#[test]
fn a_terminal_that_is_gone_ends_the_attach_and_not_the_process() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&TTY, "print up then hold");
    let (pty, mut child) = attached(&daemon, &id);
    drop(pty);
    assert_eq!(exit_code(&mut child), Some(129));
    daemon.fixture.anchor.wait_for(1);
}
