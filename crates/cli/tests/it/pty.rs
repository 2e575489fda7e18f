//! A real terminal, with a program of ours on it.

use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command};

use lastbyte_testkit::PATIENCE;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::ioctl_fionread;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};

use crate::harness::start;

pub struct Pty {
    /// What a person sees and types on.
    master: OwnedFd,
    slave: OwnedFd,
    /// How it was set at first.
    before: String,
    /// All that was shown.
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

    /// The program with all three streams on it.
    pub fn run(&self, mut command: Command) -> Child {
        let stream = || self.slave.try_clone().unwrap();
        command.stdin(stream()).stdout(stream()).stderr(stream());
        start(command)
    }

    pub fn types(&self, keys: &str) {
        let count = rustix::io::write(&self.master, keys.as_bytes()).unwrap();
        assert_eq!(count, keys.len());
    }

    /// Nobody is told: that is the business of a controlling terminal.
    pub fn resize(&self, rows: u16, cols: u16) {
        let size = Winsize { ws_row: rows, ws_col: cols, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.master, size).unwrap();
    }

    /// Reads until this is among what was shown, and forgets all up to it.
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

    /// Whether this is among what was shown by now; nothing is forgotten.
    pub fn has_shown(&mut self, what: &str) -> bool {
        while self.has_something_at_once() {
            self.read();
        }
        self.seen.contains(what)
    }

    /// Reads until so many bytes were shown.
    #[track_caller]
    pub fn shows_so_much(&mut self, bytes: usize) {
        while self.seen.len() < bytes {
            assert!(self.read(), "only {} bytes", self.seen.len());
        }
    }

    /// Waits until as much waits for its reader as it gives at once: from then on it takes no more
    /// than its buffers do.
    pub fn until_full(&self) {
        lastbyte_testkit::eventually("the terminal is full", || {
            ioctl_fionread(&self.master).unwrap() >= 4000
        });
    }

    /// Writes until it takes no more; returns what it took.
    pub fn fill(&self) -> String {
        let name = ptsname(&self.master, Vec::new()).unwrap();
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let slave = open(name, flags, Mode::empty()).unwrap();
        let mut filled = String::new();
        while let Ok(count) = rustix::io::write(&slave, b"full") {
            filled.push_str(&"full"[..count]);
        }
        filled
    }

    /// The rest of what was shown by a program that has ended, with its exit code.
    #[track_caller]
    pub fn ends(&mut self, mut child: Child) -> Option<i32> {
        lastbyte_testkit::eventually("the program ends", || {
            let ended = child.try_wait().unwrap().is_some();
            // Looked for afterwards, so that the last of it is found.
            while self.has_something_at_once() {
                self.read();
            }
            ended
        });
        child.wait().unwrap().code()
    }

    /// Whether keys are what they were at first: lines, echo, Ctrl-C.
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
