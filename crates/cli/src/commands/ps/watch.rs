//! `lastbyte ps --watch`: the list, drawn again whenever something happens.

use std::convert::Infallible;
use std::time::Duration;

use anyhow::Context;
use lastbyte_client::{Client, Events};
use rustix::stdio::stdout;
use tokio::signal::unix::Signal;
use tokio::time::timeout;

use super::Args;
use crate::signals::Signals;
use crate::{autostart, exit_code, stdio, usage};

/// Events of so short a time are drawn together.
const TOGETHER: Duration = Duration::from_millis(50);

/// Draws until it is interrupted; returns the exit code.
pub(super) async fn watch(args: &Args) -> anyhow::Result<u8> {
    // What is drawn shows that the server is back.
    let client = autostart::client_of_history(&args.server).await?.on_reconnect(|| {});
    // From before the first look, so that nothing is missed in between.
    let events = client.events(args.filter.session.as_deref()).await?;
    let mut signals = Signals::listen()?;
    let resized = stdio::size_changes()?;
    let screen = Screen::enter()?;
    tokio::select! {
        signal = signals.next() => Ok(exit_code::from_signal(signal)),
        failed = draw_for_ever(args, &client, (events, resized), &screen) => match failed? {},
    }
}

async fn draw_for_ever(
    args: &Args,
    client: &Client,
    (mut events, mut resized): (Events, Signal),
    screen: &Screen,
) -> anyhow::Result<Infallible> {
    loop {
        let page = client.list(&args.query()).await?;
        screen.draw(&super::listing(&page))?;
        // What runs grows older, and writes without telling anybody.
        if let Ok(news) = timeout(args.interval, until_news(&mut events, &mut resized)).await {
            news?;
        }
    }
}

async fn until_news(events: &mut Events, resized: &mut Signal) -> anyhow::Result<()> {
    tokio::select! {
        news = events.next() => { news?; }
        _ = resized.recv() => return Ok(()),
    }
    match timeout(TOGETHER, all(events)).await {
        Ok(failed) => match failed? {},
        Err(_) => Ok(()),
    }
}

async fn all(events: &mut Events) -> anyhow::Result<Infallible> {
    loop {
        events.next().await?;
    }
}

/// Another screen than that of the shell, without a cursor; the first one is back when this is
/// dropped, by a panic as well.
#[derive(Debug)]
struct Screen(());

const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
const HOME: &str = "\x1b[H";
const CLEAR_LINE: &str = "\x1b[K";
const CLEAR_BELOW: &str = "\x1b[J";

impl Screen {
    fn enter() -> anyhow::Result<Self> {
        if !rustix::termios::isatty(stdout()) {
            return Err(usage::Error::WatchNeedsTerminal.into());
        }
        write(ENTER)?;
        Ok(Self(()))
    }

    /// Replaces what is shown, in one write and without clearing first: nothing flickers.
    fn draw(&self, text: &str) -> anyhow::Result<()> {
        let lines = fitting(text, usize::from(stdio::size().rows));
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

/// As many lines as fit, and how many were cut.
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
    stdio::write_all(stdout(), text.as_bytes()).context("cannot write to the terminal")
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
