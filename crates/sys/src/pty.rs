//! Pseudo-terminals: our end (the controller) and the operations on it.

use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::pipe::SpliceFlags;
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Winsize, tcgetattr, tcgetpgrp,
    tcgetwinsize, tcsetattr, tcsetwinsize,
};

/// The size of a terminal in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowSize {
    pub rows: u16,
    pub cols: u16,
}

/// Opens a pty of this size: our end, and the terminal for the child. Both are close-on-exec.
///
/// The terminal is opened through our end, not by name: the name could refer to another terminal by
/// then.
pub(crate) fn open(size: WindowSize) -> Result<(OwnedFd, OwnedFd), Errno> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let ours = openpt(flags)?;
    unlockpt(&ours)?;
    let terminal = ioctl_tiocgptpeer(&ours, flags)?;
    resize(&ours, size)?;
    Ok((ours, terminal))
}

/// Changes the size. The foreground group gets SIGWINCH.
pub fn resize(ours: impl AsFd, size: WindowSize) -> Result<(), Errno> {
    let size = Winsize { ws_row: size.rows, ws_col: size.cols, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(ours, size)
}

/// The size it has now.
pub fn size(ours: impl AsFd) -> Result<WindowSize, Errno> {
    let Winsize { ws_row: rows, ws_col: cols, .. } = tcgetwinsize(ours)?;
    Ok(WindowSize { rows, cols })
}

/// The byte that means end of file when typed on this terminal; usually 4.
pub fn end_of_file(terminal: impl AsFd) -> Result<u8, Errno> {
    Ok(tcgetattr(terminal)?.special_codes[SpecialCodeIndex::VEOF])
}

/// How a terminal takes what is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Typing {
    /// Key by key, shown by the program itself if at all.
    Keys,
    /// Line by line, shown as it is typed.
    Lines,
    /// Line by line and not shown, as a password is.
    HiddenLines,
}

/// How this terminal takes what is typed, asked on either end.
pub fn typing(terminal: impl AsFd) -> Result<Typing, Errno> {
    let modes = tcgetattr(terminal)?.local_modes;
    Ok(match (modes.contains(LocalModes::ICANON), modes.contains(LocalModes::ECHO)) {
        (false, _) => Typing::Keys,
        (true, true) => Typing::Lines,
        (true, false) => Typing::HiddenLines,
    })
}

/// Which bytes end the line that is being typed, and which one takes that from the next.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LineKeys {
    ends: Vec<u8>,
    quote: Option<u8>,
}

impl LineKeys {
    /// Whether this byte gives the line to the program, or drops it.
    pub fn end_line(&self, byte: u8) -> bool {
        self.ends.contains(&byte)
    }

    /// Whether the byte after this one has no meaning.
    pub fn quote(&self, byte: u8) -> bool {
        self.quote == Some(byte)
    }
}

/// Those of a terminal that takes lines; `None` if it takes keys. Asked on either end.
pub fn line_keys(terminal: impl AsFd) -> Result<Option<LineKeys>, Errno> {
    use SpecialCodeIndex as Key;
    let modes = tcgetattr(terminal)?;
    let (input, local) = (modes.input_modes, modes.local_modes);
    if !local.contains(LocalModes::ICANON) {
        return Ok(None);
    }
    // Zero stands for a key that is off.
    let key = |key: Key| Some(modes.special_codes[key]).filter(|byte| *byte != 0);
    let is_extended = local.contains(LocalModes::IEXTEN);
    let signals = local.contains(LocalModes::ISIG) && !local.contains(LocalModes::NOFLSH);
    let makes_newline = input.contains(InputModes::ICRNL) && !input.contains(InputModes::IGNCR);
    let ends = [
        Some(b'\n').filter(|_| !input.contains(InputModes::INLCR)),
        Some(b'\r').filter(|_| makes_newline),
        key(Key::VEOF),
        key(Key::VEOL),
        key(Key::VEOL2).filter(|_| is_extended),
        key(Key::VKILL),
        key(Key::VINTR).filter(|_| signals),
        key(Key::VQUIT).filter(|_| signals),
        key(Key::VSUSP).filter(|_| signals),
    ];
    let quote = key(Key::VLNEXT).filter(|_| is_extended);
    Ok(Some(LineKeys { ends: ends.into_iter().flatten().collect(), quote }))
}

/// Stops the terminal from showing what is typed. Says whether it did.
pub fn hide_typing(ours: impl AsFd) -> Result<bool, Errno> {
    let mut modes = tcgetattr(&ours)?;
    if !modes.local_modes.contains(LocalModes::ECHO) {
        return Ok(false);
    }
    modes.local_modes.remove(LocalModes::ECHO);
    tcsetattr(ours, OptionalActions::Now, &modes)?;
    Ok(true)
}

/// Lets the terminal show what is typed.
pub fn show_typing(ours: impl AsFd) -> Result<(), Errno> {
    let mut modes = tcgetattr(&ours)?;
    modes.local_modes.insert(LocalModes::ECHO);
    tcsetattr(ours, OptionalActions::Now, &modes)
}

/// Whether everything that was typed has arrived at the terminal and was read, except a line that has not
/// ended: the kernel tells nobody of it. What is written to our end arrives later; only a poll that finds
/// nothing to read waits for it (`n_tty_poll`).
pub fn is_all_read(terminal: impl AsFd) -> Result<bool, Errno> {
    let mut polled = [PollFd::new(&terminal, PollFlags::IN)];
    let ready = crate::pipe::retry(|| poll(&mut polled, Some(&Timespec::default())))?;
    Ok(ready == 0)
}

/// The group that may read this terminal, if it has one that we can see.
pub fn foreground(ours: impl AsFd) -> Option<i32> {
    tcgetpgrp(ours).ok().map(|group| group.as_raw_nonzero().get())
}

/// Moves up to `most` bytes of output into a pipe, without waiting.
///
/// `Ok(0)` is the end: no process has the terminal open. `EAGAIN` means nothing yet.
pub fn splice_into_pipe(ours: impl AsFd, pipe: impl AsFd, most: usize) -> Result<usize, Errno> {
    let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
    match crate::pipe::retry(|| rustix::pipe::splice(&ours, None, &pipe, None, most, flags)) {
        Err(Errno::IO) => Ok(0),
        answer => answer,
    }
}
