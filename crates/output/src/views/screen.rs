//! The screen of a terminal that has shown the log up to an offset.
//!
//! It is computed when somebody asks, never while output is stored. A terminal reads 10 to 30 MB a second, so a screen
//! is made from the nearest [`Checkpoint`] before the offset, else from the last [`WINDOW`] bytes before it. Then modes
//! that were set earlier are unknown, and `from` says so. A few bytes can fill the whole screen, so less is read of output
//! that is too much work. Output that was dropped is skipped: the screen starts afresh after it. The whole log is shown
//! on one size, because sizes are not recorded.

mod charset;
mod extras;
mod ground;
#[cfg(test)]
mod tests;
mod work;

use std::io;
use std::num::NonZeroU16;
use std::ops::ControlFlow;

use memchr::{memchr, memchr_iter};
use vt100::{Parser, Screen};

use super::Source;
use super::walk::{CHUNK, Chunk, Walk, WalkStep};
use charset::Charsets;
use extras::Extras;
use ground::Ground;
use work::Work;

/// How much of the log is read for a screen at most.
pub const WINDOW: u64 = 16 << 20;

/// The terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Terminal {
    pub rows: NonZeroU16,
    pub cols: NonZeroU16,
    pub newline: Newline,
}

/// What a newline in the log does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Newline {
    /// Moves down. A program on a terminal writes through a driver that adds the carriage return.
    Down,
    /// Starts the next line: the output of a pipe has no carriage returns.
    NextLine,
}

/// What the terminal shows at an offset.
#[derive(Debug, Clone)]
pub struct Rendered {
    /// Where it was switched on: 0, unless the log is long or was dropped.
    pub from: u64,
    /// The offset up to which it has read.
    pub at: u64,
    /// `None` if it is hidden. Row and column start at 0.
    pub cursor: Option<(u16, u16)>,
    pub title: Option<String>,
    screen: Screen,
    extras: Extras,
    /// A state close to `at` from which a later screen can be made.
    pub checkpoint: Option<Checkpoint>,
}

/// A terminal that has read a log up to an offset between two characters or sequences.
#[derive(Debug, Clone)]
pub struct Checkpoint {
    pub at: u64,
    from: u64,
    screen: Screen,
    extras: Extras,
    charsets: Charsets,
}

/// Shows the log up to `at`. The checkpoint must be of the same log and terminal.
pub fn render(
    source: &dyn Source,
    at: u64,
    terminal: Terminal,
    checkpoint: Option<Checkpoint>,
) -> io::Result<Rendered> {
    let at = at.min(source.end());
    let mut window = WINDOW;
    loop {
        let from = at.saturating_sub(window);
        let usable = |checkpoint: &&Checkpoint| (from..=at).contains(&checkpoint.at);
        let begin = match checkpoint.as_ref().filter(usable) {
            Some(checkpoint) => Shown::resume(terminal, checkpoint.clone()),
            None => Shown::new(terminal, from),
        };
        if let Some(shown) = show(source, at, terminal, begin)? {
            return Ok(shown.finish(at));
        }
        window /= 16;
    }
}

/// `None` if it is too much work, which it is not for no bytes at all.
fn show(
    source: &dyn Source,
    at: u64,
    terminal: Terminal,
    mut shown: Shown,
) -> io::Result<Option<Shown>> {
    let mut work = Work::new(terminal);
    let mut walk = Walk::new(source, shown.at..at);
    let flow = walk.try_for_each(|step| {
        match step {
            WalkStep::Bytes(chunk) if work.is_too_much_with(chunk.bytes) => {
                return ControlFlow::Break(());
            }
            WalkStep::Bytes(chunk) => shown.push(chunk, at),
            WalkStep::Dropped(range) => shown = Shown::new(terminal, range.end.min(at)),
        }
        ControlFlow::Continue(())
    })?;
    Ok(flow.is_continue().then_some(shown))
}

/// How far back a screen at `at` looks, with a checkpoint at this offset or none.
pub fn begins(at: u64, checkpoint: Option<u64>) -> u64 {
    at.saturating_sub(WINDOW).max(checkpoint.filter(|offset| *offset <= at).unwrap_or(0))
}

/// The terminal while it reads.
struct Shown {
    parser: Parser<Extras>,
    newline: Newline,
    ground: Ground,
    charsets: Charsets,
    from: u64,
    at: u64,
    /// It was switched on within the log, perhaps within a line or a sequence.
    is_cut: bool,
    checkpoint: Option<Checkpoint>,
}

impl Shown {
    fn new(terminal: Terminal, from: u64) -> Self {
        let Terminal { rows, cols, newline } = terminal;
        let parser = Parser::new_with_callbacks(rows, cols, 0, Extras::default());
        let (ground, charsets) = (Ground::default(), Charsets::default());
        let (at, is_cut) = (from, from > 0);
        Self { parser, newline, ground, charsets, from, at, is_cut, checkpoint: None }
    }

    fn resume(terminal: Terminal, checkpoint: Checkpoint) -> Self {
        let Checkpoint { at, from, ref screen, ref extras, charsets } = checkpoint;
        let mut shown = Self::new(terminal, from);
        *shown.parser.screen_mut() = screen.clone();
        *shown.parser.callbacks_mut() = extras.clone();
        Self { at, is_cut: false, charsets, checkpoint: Some(checkpoint), ..shown }
    }

    /// Reads a chunk on the way to offset `until`.
    fn push(&mut self, mut chunk: Chunk<'_>, until: u64) {
        if self.is_cut {
            self.is_cut = false;
            // The first line may be half a sequence. If the chunk is one line, there is nothing better.
            let newline = memchr(b'\n', chunk.bytes);
            chunk.take(newline.map_or(0, |newline| newline + 1));
            self.from = chunk.at;
        }
        let (read, rest) = chunk.bytes.split_at(self.ground.last_border(chunk.bytes));
        self.feed(read);
        // A copy of the screen takes time, so only the last is made.
        let is_last = until - chunk.at <= 2 * CHUNK as u64;
        if is_last && !read.is_empty() {
            let screen = self.parser.screen().clone();
            let (at, extras) = (chunk.at + read.len() as u64, self.parser.callbacks().clone());
            let (from, charsets) = (self.from, self.charsets);
            self.checkpoint = Some(Checkpoint { at, from, screen, extras, charsets });
        }
        self.feed(rest);
        self.at = chunk.at + chunk.bytes.len() as u64;
    }

    fn feed(&mut self, bytes: &[u8]) {
        let bytes = self.charsets.translate(bytes);
        match self.newline {
            Newline::Down => self.parser.process(&bytes),
            Newline::NextLine => {
                let mut start = 0;
                for newline in memchr_iter(b'\n', &bytes) {
                    self.parser.process(&bytes[start..newline]);
                    self.parser.process(b"\r\n");
                    start = newline + 1;
                }
                self.parser.process(&bytes[start..]);
            }
        }
    }

    fn finish(self, at: u64) -> Rendered {
        let (screen, extras) = (self.parser.screen().clone(), self.parser.callbacks().clone());
        let cursor = (!screen.hide_cursor()).then(|| screen.cursor_position());
        let Self { from, checkpoint, .. } = self;
        Rendered { from, at, cursor, title: extras.title.clone(), screen, extras, checkpoint }
    }
}

impl Rendered {
    /// The text of each row, without the spaces at its end.
    pub fn lines(&self) -> Vec<String> {
        let (_, cols) = self.screen.size();
        let rows = self.screen.rows(0, cols.get());
        rows.map(|row| row.trim_end_matches(' ').to_owned()).collect()
    }

    /// The same with colours and other attributes, as escape sequences.
    pub fn lines_with_colours(&self) -> Vec<String> {
        let (_, cols) = self.screen.size();
        self.screen.rows_formatted(0, cols.get()).collect()
    }

    /// What brings another terminal of this size to this state: its screen, text, colours, cursor and modes.
    pub fn state(&self) -> String {
        state(&self.screen, &self.extras)
    }

    /// The state at the end of the last character or sequence, and the offset of that: another terminal can go on with
    /// the log there. Without such an end it is that of the screen.
    pub fn state_to_go_on_from(&self) -> (u64, String) {
        match &self.checkpoint {
            Some(Checkpoint { at, screen, extras, .. }) => (*at, state(screen, extras)),
            None => (self.at, self.state()),
        }
    }

    /// Whether a program has switched to the other screen, as editors do.
    pub fn is_alternate(&self) -> bool {
        self.screen.alternate_screen()
    }
}

fn state(screen: &Screen, extras: &Extras) -> String {
    let alternate = if screen.alternate_screen() { "\x1b[?1049h" } else { "" };
    format!("{alternate}{}{}", screen.state_formatted(), extras.modes())
}

impl Checkpoint {
    /// About how much memory it takes.
    pub fn bytes(&self) -> usize {
        let (rows, cols) = self.screen.size();
        // Two screens, and about 32 bytes for each cell.
        2 * 32 * usize::from(rows.get()) * usize::from(cols.get())
    }
}
