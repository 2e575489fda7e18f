//! Our own terminal, lent to the command: raw while it runs, as it was afterwards.

use std::io;
use std::os::fd::OwnedFd;

use lastbyte_engine::WindowSize;
use rustix::io::fcntl_dupfd_cloexec;
use rustix::stdio::{stderr, stdin, stdout};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Standard input's terminal in raw mode: every key goes to the command, Ctrl-C too. Put back as it
/// was when this is dropped, by a panic as well.
#[derive(Debug)]
pub(crate) struct Raw {
    /// Ours alone: standard input itself is let go when the command takes no more.
    terminal: OwnedFd,
    before: Termios,
}

/// What a terminal has that nobody told of its size.
const USUAL: WindowSize = WindowSize { rows: 24, cols: 80 };

impl Raw {
    /// `None` when standard input is no terminal, or not ours to change.
    pub(crate) fn enter() -> Option<Self> {
        let terminal = fcntl_dupfd_cloexec(stdin(), 3).ok()?;
        let before = tcgetattr(&terminal).ok()?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(&terminal, OptionalActions::Now, &raw).ok()?;
        Some(Self { terminal, before })
    }

    /// After somebody else may have changed it; what it is put back to stays.
    pub(crate) fn enter_again(&self) {
        let mut raw = self.before.clone();
        raw.make_raw();
        // A terminal that is gone is noticed by whoever reads from it.
        _ = tcsetattr(&self.terminal, OptionalActions::Now, &raw);
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing put back.
        _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.before);
    }
}

/// The size of whichever of our streams is a terminal.
pub(crate) fn size() -> WindowSize {
    let sizes = [stdout(), stdin(), stderr()].into_iter().filter_map(|fd| tcgetwinsize(fd).ok());
    let mut known = sizes.filter(|size| size.ws_row > 0 && size.ws_col > 0);
    known.next().map_or(USUAL, |size| WindowSize { rows: size.ws_row, cols: size.ws_col })
}

/// How many characters a line of standard output has; no bound where that is no terminal.
pub(crate) fn width_of_stdout() -> Option<usize> {
    let size = tcgetwinsize(stdout()).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}

/// Hears when our terminal is given another size. Must be called on a runtime.
pub(crate) fn size_changes() -> io::Result<Signal> {
    signal(SignalKind::window_change())
}
