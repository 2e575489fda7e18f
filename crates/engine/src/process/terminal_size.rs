//! The size of a process's terminal, which clients change and readers ask for.

use std::sync::atomic::{AtomicU32, Ordering};

use lastbyte_sys::pty::WindowSize;

use crate::launch::Streams;

/// Rows and columns in one number, so that nobody sees half a change; 0 without a terminal.
#[derive(Debug)]
pub(crate) struct TerminalSize(AtomicU32);

impl TerminalSize {
    /// The size of now, if it is known, else the one of the launch.
    pub(crate) fn new(now: Option<WindowSize>, streams: Streams) -> Self {
        let launched = match streams {
            Streams::Pty(size) => Some(size),
            Streams::Merged | Streams::Split => None,
        };
        Self(AtomicU32::new(now.or(launched).map_or(0, packed)))
    }

    pub(crate) fn set(&self, size: WindowSize) {
        self.0.store(packed(size), Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> Option<WindowSize> {
        let packed = self.0.load(Ordering::Relaxed);
        let size = WindowSize { rows: (packed >> 16) as u16, cols: packed as u16 };
        (packed != 0).then_some(size)
    }
}

fn packed(size: WindowSize) -> u32 {
    u32::from(size.rows) << 16 | u32::from(size.cols)
}
