//! Actions about the terminal.
//!
//! - `is-tty`: a line with those of `stdin stdout stderr` that are terminals, or `none`.
//! - `winsize`: a line with `ROWS COLS` of the terminal on stdin.
//! - `print-winsize-on-winch`: prints the line `ready`, waits for SIGWINCH, then as `winsize`.
//! - `hide-typing`: lets the terminal on stdin not show what is typed.
//! - `raw-terminal`: lets it pass on each key, as it is.
//! - `read-terminal`: opens `/dev/tty` and reads from it once.
//! - `be-unreadable`: lets only root look at this process, as at one of another user.

use std::fs::File;
use std::io::{self, IsTerminal, Read};

use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use rustix::stdio::stdin;
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

use signal_hook::consts::SIGWINCH;

use crate::output::OUT;
use crate::signals;
use crate::words::Words;

pub(crate) fn is_tty(words: Words<'_>) -> io::Result<()> {
    words.done()?;
    let streams = [
        ("stdin", io::stdin().is_terminal()),
        ("stdout", io::stdout().is_terminal()),
        ("stderr", io::stderr().is_terminal()),
    ];
    let terminals: Vec<&str> = streams.iter().filter(|s| s.1).map(|s| s.0).collect();
    let line = if terminals.is_empty() { "none".to_owned() } else { terminals.join(" ") };
    OUT.write(format!("{line}\n").as_bytes())
}

pub(crate) fn winsize(words: Words<'_>) -> io::Result<()> {
    words.done()?;
    let size = rustix::termios::tcgetwinsize(rustix::stdio::stdin())?;
    OUT.write(format!("{} {}\n", size.ws_row, size.ws_col).as_bytes())
}

pub(crate) fn print_winsize_on_winch(words: Words<'_>) -> io::Result<()> {
    words.done()?;
    let mut arrivals = signals::arrivals_of(SIGWINCH)?;
    // If the test never resizes, SIGHUP kills this process when its terminal closes.
    OUT.write(b"ready\n")?;
    arrivals.read_exact(&mut [0])?;
    winsize(words)
}

pub(crate) fn hide_typing(words: Words<'_>) -> io::Result<()> {
    words.done()?;
    let mut modes = tcgetattr(stdin())?;
    modes.local_modes.remove(LocalModes::ECHO);
    Ok(tcsetattr(stdin(), OptionalActions::Now, &modes)?)
}

pub(crate) fn raw_terminal(words: Words<'_>) -> io::Result<()> {
    words.done()?;
    let mut modes = tcgetattr(stdin())?;
    modes.make_raw();
    Ok(tcsetattr(stdin(), OptionalActions::Now, &modes)?)
}

pub(crate) fn read_terminal(words: Words<'_>) -> io::Result<()> {
    words.done()?;
    File::open("/dev/tty")?.read(&mut [0; 1024]).map(drop)
}

pub(crate) fn be_unreadable(words: Words<'_>) -> io::Result<()> {
    words.done()?;
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}
