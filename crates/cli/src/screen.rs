//! The whole of our terminal, lent to a picture that is drawn again and again: what was on it before
//! is there again afterwards.

use anyhow::Context;
use rustix::stdio::stdout;

use crate::{own_streams, terminal, usage};

/// Another screen than that of the shell, without a cursor; the first one is back when this is
/// dropped, by a panic as well.
#[derive(Debug)]
pub(crate) struct Screen(());

const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
const HOME: &str = "\x1b[H";
const CLEAR_LINE: &str = "\x1b[K";
const CLEAR_BELOW: &str = "\x1b[J";

impl Screen {
    pub(crate) fn enter() -> anyhow::Result<Self> {
        if !rustix::termios::isatty(stdout()) {
            return Err(usage::Error::WatchNeedsTerminal.into());
        }
        write(ENTER)?;
        Ok(Self(()))
    }

    /// Replaces what is shown, in one write and without clearing first: nothing flickers.
    pub(crate) fn draw(&self, text: &str) -> anyhow::Result<()> {
        let lines = fitting(text, usize::from(terminal::size().rows));
        let lines = lines.join(&format!("{CLEAR_LINE}\r\n"));
        write(&format!("{HOME}{lines}{CLEAR_LINE}{CLEAR_BELOW}"))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing put back.
        _ = write(LEAVE);
    }
}

/// As many lines as there is room for, and how many there is none for.
fn fitting(text: &str, rows: usize) -> Vec<String> {
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if lines.len() <= rows {
        return lines;
    }
    let shown = rows.saturating_sub(1);
    let more = format!("… and {} more", lines.len() - shown);
    lines.into_iter().take(shown).chain([more]).collect()
}

fn write(text: &str) -> anyhow::Result<()> {
    own_streams::write_all(stdout(), text.as_bytes()).context("cannot write to the terminal")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_counted() {
        assert_eq!(fitting("a\nb\nc\n", 3), ["a", "b", "c"]);
        assert_eq!(fitting("a\nb\nc\n", 2), ["a", "… and 2 more"]);
    }
}
