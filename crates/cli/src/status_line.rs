//! A line on standard error that says what is being waited for, removed when that is over. Only on a
//! terminal, and only for what takes longer than a moment.

use std::time::Duration;

use rustix::stdio::stderr;
use rustix::termios::isatty;
use tokio::time::{Instant, sleep_until};

use crate::{print, stdio};

/// A shorter wait shows no line.
const A_MOMENT: Duration = Duration::from_secs(1);
const CLEAR: &str = "\r\x1b[K";

/// Cleared when dropped.
pub(crate) struct StatusLine(());

impl StatusLine {
    /// `None` if standard error is not a terminal.
    pub(crate) fn new() -> Option<Self> {
        isatty(stderr()).then(|| Self(()))
    }

    pub(crate) fn show(&self, text: &str) {
        // A line that is wrapped could not be cleared.
        let width = usize::from(stdio::size().cols).saturating_sub(1);
        write(&format!("{CLEAR}{}", text.chars().take(width).collect::<String>()));
        print::break_line_first();
    }
}

impl Drop for StatusLine {
    fn drop(&mut self) {
        write(CLEAR);
        print::line_is_clear();
    }
}

/// Waits, and after a moment says for what and for how long.
pub(crate) async fn during<T>(what: &str, waiting: impl Future<Output = T>) -> T {
    let text = async { |waited: Duration| format!("{what} ({}s)", waited.as_secs()) };
    during_with(text, waiting).await
}

/// The same with a text of its own for each second. What makes the texts is awaited only if they are
/// shown.
pub(crate) async fn during_with<T, Text: Fn(Duration) -> String>(
    text: impl Future<Output = Text>,
    waiting: impl Future<Output = T>,
) -> T {
    let line = async {
        let begun = Instant::now();
        sleep_until(begun + A_MOMENT).await;
        let Some(line) = StatusLine::new() else { return std::future::pending().await };
        let text = text.await;
        for second in 1.. {
            line.show(&text(A_MOMENT * second));
            sleep_until(begun + A_MOMENT * (second + 1)).await;
        }
    };
    tokio::select! {
        answer = waiting => answer,
        () = line => unreachable!("it goes on for ever"),
    }
}

fn write(text: &str) {
    // A status line that cannot be written is no loss.
    _ = stdio::write_all(stderr(), text.as_bytes());
}
