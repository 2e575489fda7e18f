//! Events of our window, and the size that the process is given.

use std::time::Duration;

use lastbyte_engine::WindowSize;
use rustix::process::{Signal as ToSelf, getpid, kill_process};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::modes::Drawing;
use crate::stdio;

#[derive(Debug)]
pub(crate) struct Window {
    resized: Signal,
    stopped: Signal,
    continued: Signal,
    /// `None` when the process is to be told no more.
    sizes: Option<watch::Sender<WindowSize>>,
    /// When a size that was told only to be different is put right.
    correct_at: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WindowEvent {
    Resized,
    /// We are asked to stop (SIGTSTP).
    Stopped,
    Continued,
}

/// How long the wrong size stays, so that a program notices it.
const DIFFERENT: Duration = Duration::from_millis(50);

impl Window {
    /// Must be called on a runtime.
    pub(crate) fn listen() -> anyhow::Result<(Self, watch::Receiver<WindowSize>)> {
        let (sizes, told) = watch::channel(stdio::size());
        let window = Self {
            resized: stdio::size_changes()?,
            stopped: signal(SignalKind::from_raw(ToSelf::TSTP.as_raw()))?,
            continued: signal(SignalKind::from_raw(ToSelf::CONT.as_raw()))?,
            sizes: Some(sizes),
            correct_at: None,
        };
        Ok((window, told))
    }

    /// Waits for what happens. Cancel-safe.
    pub(crate) async fn next(&mut self) -> WindowEvent {
        let correct_at = async {
            match self.correct_at {
                Some(time) => sleep_until(time).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.stopped.recv() => WindowEvent::Stopped,
            _ = self.continued.recv() => WindowEvent::Continued,
            _ = self.resized.recv() => WindowEvent::Resized,
            () = correct_at => WindowEvent::Resized,
        }
    }

    /// Tells the process the size of our window.
    pub(crate) fn send_size(&mut self) {
        self.correct_at = None;
        self.send(stdio::size());
    }

    /// The same to a program that our window is new to. Only a changed size makes every program
    /// redraw its whole screen, so a wrong size is sent first and then the right one.
    pub(crate) fn resend_size(&mut self, drawing: Drawing) {
        match drawing {
            Drawing::Lines => self.send_size(),
            Drawing::Screen => {
                let WindowSize { rows, cols } = stdio::size();
                self.send(WindowSize { rows: if rows > 1 { rows - 1 } else { 2 }, cols });
                self.correct_at = Some(Instant::now() + DIFFERENT);
            }
        }
    }

    /// Sends no more sizes, and does not leave the process with a wrong one.
    pub(crate) fn close(&mut self) {
        if self.correct_at.is_some() {
            self.send_size();
        }
        self.sizes = None;
    }

    fn send(&self, size: WindowSize) {
        if let Some(sizes) = &self.sizes {
            sizes.send_replace(size);
        }
    }
}

/// Stops this program, as SIGTSTP would have; returns when it is continued.
pub(crate) fn stop_self() {
    // It cannot fail: a process may always stop itself.
    _ = kill_process(getpid(), ToSelf::STOP);
}
