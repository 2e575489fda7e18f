//! Pseudo-terminals: the program's end (the controller) and what is done through it.

use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::pipe::SpliceFlags;
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{SpecialCodeIndex, Winsize, tcgetattr, tcsetwinsize};

/// How large a terminal is, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowSize {
    pub rows: u16,
    pub cols: u16,
}

/// A new pty of this size: our end, and the terminal that a child gets. Both are closed on exec.
///
/// The terminal is opened through our end, not by its name, which could mean another by then.
pub(crate) fn open(size: WindowSize) -> Result<(OwnedFd, OwnedFd), Errno> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let ours = openpt(flags)?;
    unlockpt(&ours)?;
    let terminal = ioctl_tiocgptpeer(&ours, flags)?;
    resize(&ours, size)?;
    Ok((ours, terminal))
}

/// Changes the size; the foreground group gets SIGWINCH.
pub fn resize(ours: impl AsFd, size: WindowSize) -> Result<(), Errno> {
    let size = Winsize { ws_row: size.rows, ws_col: size.cols, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(ours, size)
}

/// The byte that means end of file on this terminal when it is typed; usually 4.
pub fn end_of_file(terminal: impl AsFd) -> Result<u8, Errno> {
    Ok(tcgetattr(terminal)?.special_codes[SpecialCodeIndex::VEOF])
}

/// Moves at most `most` bytes of output into a pipe, without waiting.
///
/// `Ok(0)` is the end: nobody has the terminal open any more. `EAGAIN` is nothing yet.
pub fn splice_into_pipe(ours: impl AsFd, pipe: impl AsFd, most: usize) -> Result<usize, Errno> {
    let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
    match crate::pipe::retry(|| rustix::pipe::splice(&ours, None, &pipe, None, most, flags)) {
        Err(Errno::IO) => Ok(0),
        answer => answer,
    }
}
