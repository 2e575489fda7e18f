//! A real terminal with our program on it.

use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command};

use lastbyte_testkit::{PATIENCE, eventually};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::ioctl_fionread;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};

use crate::harness::start;

pub struct Pty {
    /// The side that a person sees and types on.
    master: OwnedFd,
    slave: OwnedFd,
    /// Its initial settings.
    before: String,
    /// Everything that was shown.
    pub seen: String,
}

impl Pty {
    pub fn new(rows: u16, cols: u16) -> Self {
        let master =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let slave = open(name, flags, Mode::empty()).unwrap();
        let before = settings(&slave);
        let pty = Self { master, slave, before, seen: String::new() };
        pty.resize(rows, cols);
        pty
    }

    /// Runs the program with all three streams on the terminal.
    pub fn run(&self, mut command: Command) -> Child {
        let stream = || self.slave.try_clone().unwrap();
        command.stdin(stream()).stdout(stream()).stderr(stream());
        start(command)
    }

    pub fn types(&self, keys: &str) {
        let count = rustix::io::write(&self.master, keys.as_bytes()).unwrap();
        assert_eq!(count, keys.len());
    }

    /// No signal is sent: only a controlling terminal does that.
    pub fn resize(&self, rows: u16, cols: u16) {
        let size = Winsize { ws_row: rows, ws_col: cols, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.master, size).unwrap();
    }

    /// Reads until this text was shown, and discards everything up to it.
    #[track_caller]
    pub fn shows(&mut self, what: &str) {
        loop {
            if let Some(at) = self.seen.find(what) {
                self.seen.drain(..at + what.len());
                return;
            }
            assert!(self.read(), "no {what:?} in {:?}", self.seen);
        }
    }

    /// Whether this text was shown; discards nothing.
    pub fn has_shown(&mut self, what: &str) -> bool {
        while self.has_something_at_once() {
            self.read();
        }
        self.seen.contains(what)
    }

    /// Reads until this many bytes were shown.
    #[track_caller]
    pub fn shows_bytes(&mut self, bytes: usize) {
        while self.seen.len() < bytes {
            assert!(self.read(), "only {} bytes", self.seen.len());
        }
    }

    /// Waits until as much waits for its reader as the reader's side holds: from then on it takes no
    /// more than the buffer before that.
    pub fn until_full(&self) {
        eventually("the terminal is full", || ioctl_fionread(&self.master).unwrap() == 4095);
    }

    /// Writes until it takes nothing more; returns what was written.
    pub fn fill(&self) -> String {
        let name = ptsname(&self.master, Vec::new()).unwrap();
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let slave = open(name, flags, Mode::empty()).unwrap();
        let mut filled = String::new();
        let mut write_until_it_blocks = || {
            while let Ok(count) = rustix::io::write(&slave, b"full") {
                filled.push_str(&"full"[..count]);
            }
        };
        write_until_it_blocks();
        // What the kernel moves to the reader's side makes room once more.
        self.until_full();
        write_until_it_blocks();
        filled
    }

    /// Reads what an ending program still shows; returns its exit code.
    #[track_caller]
    pub fn ends(&mut self, mut child: Child) -> Option<i32> {
        eventually("the program ends", || {
            let ended = child.try_wait().unwrap().is_some();
            // Read after the exit, so that the last output is found.
            while self.has_something_at_once() {
                self.read();
            }
            ended
        });
        child.wait().unwrap().code()
    }

    /// Whether the settings are the initial ones: lines, echo, Ctrl-C.
    pub fn is_as_before(&self) -> bool {
        settings(&self.slave) == self.before
    }

    fn read(&mut self) -> bool {
        let wait = PATIENCE.try_into().unwrap();
        let mut ready = [PollFd::from_borrowed_fd(self.master.as_fd(), PollFlags::IN)];
        if poll(&mut ready, Some(&wait)).unwrap() == 0 {
            return false;
        }
        let mut buffer = vec![0; 64 << 10];
        let count = rustix::io::read(&self.master, &mut buffer).unwrap();
        self.seen.push_str(&String::from_utf8_lossy(&buffer[..count]));
        true
    }

    fn has_something_at_once(&self) -> bool {
        let mut ready = [PollFd::from_borrowed_fd(self.master.as_fd(), PollFlags::IN)];
        poll(&mut ready, Some(&rustix::event::Timespec::default())).unwrap() > 0
    }
}

fn settings(terminal: &OwnedFd) -> String {
    format!("{:?}", tcgetattr(terminal).unwrap())
}
