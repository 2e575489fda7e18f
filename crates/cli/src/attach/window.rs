//! What happens to our window, and the size that the process is told of.

use std::io;
use std::pin::Pin;
use std::time::Duration;

use lastbyte_engine::WindowSize;
use rustix::process::{Signal as ToSelf, getpid, kill_process};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::time::{Instant, Sleep, sleep_until};

use super::modes::Drawing;
use crate::terminal;

#[derive(Debug)]
pub(crate) struct Window {
    resized: Signal,
    stopped: Signal,
    continued: Signal,
    /// `None` when the process is to be told no more.
    sizes: Option<watch::Sender<WindowSize>>,
    /// When a size that was told only to be different is put right.
    put_right: Option<Pin<Box<Sleep>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WindowEvent {
    Resized,
    /// We are to stop; nobody has stopped yet.
    Stopped,
    Continued,
}

/// How long a program has to see the size that is not the right one.
const DIFFERENT: Duration = Duration::from_millis(50);

impl Window {
    /// Must be called on a runtime.
    pub(crate) fn listen() -> io::Result<(Self, watch::Receiver<WindowSize>)> {
        let (sizes, told) = watch::channel(terminal::size());
        let window = Self {
            resized: terminal::size_changes()?,
            stopped: signal(SignalKind::from_raw(ToSelf::TSTP.as_raw()))?,
            continued: signal(SignalKind::from_raw(ToSelf::CONT.as_raw()))?,
            sizes: Some(sizes),
            put_right: None,
        };
        Ok((window, told))
    }

    /// Waits for what happens. Cancel-safe.
    pub(crate) async fn next(&mut self) -> WindowEvent {
        let put_right = async {
            match &mut self.put_right {
                Some(time) => time.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.stopped.recv() => WindowEvent::Stopped,
            _ = self.continued.recv() => WindowEvent::Continued,
            _ = self.resized.recv() => WindowEvent::Resized,
            () = put_right => WindowEvent::Resized,
        }
    }

    /// Tells the process the size of our window.
    pub(crate) fn tell_size(&mut self) {
        self.put_right = None;
        self.tell(terminal::size());
    }

    /// The same to a program that our window is new to.
    pub(crate) fn tell_size_anew(&mut self, drawing: Drawing) {
        match drawing {
            Drawing::Lines => self.tell_size(),
            Drawing::Screen => self.make_it_draw(),
        }
    }

    /// Only another size makes every program draw all of its screen, so it is told of one and then
    /// of the right one.
    fn make_it_draw(&mut self) {
        let WindowSize { rows, cols } = terminal::size();
        self.tell(WindowSize { rows: if rows > 1 { rows - 1 } else { 2 }, cols });
        self.put_right = Some(Box::pin(sleep_until(Instant::now() + DIFFERENT)));
    }

    /// The process is told no more, and is not left with a size that is wrong.
    pub(crate) fn close(&mut self) {
        if self.put_right.is_some() {
            self.tell_size();
        }
        self.sizes = None;
    }

    fn tell(&self, size: WindowSize) {
        if let Some(sizes) = &self.sizes {
            sizes.send_replace(size);
        }
    }
}

/// Stops this program as if nobody had listened; returns when it is continued.
pub(crate) fn stop_self() {
    // It cannot fail: everybody may stop himself.
    _ = kill_process(getpid(), ToSelf::STOP);
}
