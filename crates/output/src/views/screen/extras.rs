//! What the screen of the crate `vt100` does not keep: the title, and some of the modes.

use std::collections::BTreeSet;
use std::fmt::Write;

use vt100::{Callbacks, Screen};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Extras {
    pub(super) title: Option<String>,
    /// Modes that are on ...
    on: BTreeSet<u16>,
    /// ... and lines are not wrapped.
    cuts_lines: bool,
    /// xterm's way of reporting keys.
    other_keys: u16,
    /// Kitty's, one on the other.
    key_flags: Vec<u16>,
}

/// Reverse, mouse reports and their forms, focus, light and dark.
const KEPT: [u16; 6] = [5, 1001, 1004, 1015, 1016, 2031];
/// As many as Kitty itself keeps, or more.
const MOST_KEY_FLAGS: usize = 16;
/// Of a longer title this much is kept: a program can send megabytes.
const LONGEST_TITLE: usize = 1024;

impl Extras {
    /// What turns on what is on.
    pub(super) fn modes(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        _ = self.on.iter().try_for_each(|mode| write!(text, "\x1b[?{mode}h"));
        if self.cuts_lines {
            text += "\x1b[?7l";
        }
        if self.other_keys > 0 {
            _ = write!(text, "\x1b[>4;{}m", self.other_keys);
        }
        _ = self.key_flags.iter().try_for_each(|flags| write!(text, "\x1b[>{flags}u"));
        text
    }

    fn switch(&mut self, mode: u16, on: bool) {
        match mode {
            7 => self.cuts_lines = !on,
            _ if !KEPT.contains(&mode) => {}
            _ if on => _ = self.on.insert(mode),
            _ => _ = self.on.remove(&mode),
        }
    }

    fn set_title(&mut self, title: &[u8]) {
        // No more than that can be replaced and get longer.
        let start = &title[..title.len().min(LONGEST_TITLE)];
        let mut text = String::from_utf8_lossy(start).into_owned();
        text.truncate(text.floor_char_boundary(LONGEST_TITLE));
        self.title = Some(text);
    }

    fn push_key_flags(&mut self, flags: u16) {
        if self.key_flags.len() < MOST_KEY_FLAGS {
            self.key_flags.push(flags);
        }
    }
}

impl Callbacks for Extras {
    fn set_window_title(&mut self, _: &mut Screen, title: &[u8]) {
        self.set_title(title);
    }

    /// A title with semicolons.
    fn unhandled_osc(&mut self, _: &mut Screen, params: &[&[u8]]) {
        if let [b"0" | b"2", title @ ..] = params {
            self.set_title(&title.join(&b';'));
        }
    }

    fn unhandled_csi(
        &mut self,
        _: &mut Screen,
        prefix: Option<u8>,
        _: Option<u8>,
        params: &[&[u16]],
        last: char,
    ) {
        let number =
            |at: usize| params.get(at).and_then(|parts| parts.first()).copied().unwrap_or(0);
        match (prefix, last) {
            // The other numbers in it, too: it comes once for each that the screen does not know.
            (Some(b'?'), 'h' | 'l') => {
                (0..params.len()).for_each(|at| self.switch(number(at), last == 'h'));
            }
            (Some(b'>'), 'm') if number(0) == 4 => self.other_keys = number(1),
            (Some(b'>'), 'u') => self.push_key_flags(number(0)),
            (Some(b'<'), 'u') => {
                let left = self.key_flags.len().saturating_sub(number(0).max(1).into());
                self.key_flags.truncate(left);
            }
            (Some(b'='), 'u') => {
                self.key_flags.pop();
                self.push_key_flags(number(0));
            }
            _ => {}
        }
    }
}
