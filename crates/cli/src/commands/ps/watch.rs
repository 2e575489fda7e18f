//! `lastbyte ps --watch`: the list, drawn again whenever something happens.

use std::convert::Infallible;
use std::time::Duration;

use anyhow::Context;
use lastbyte_client::{Client, Events};
use tokio::signal::unix::Signal;
use tokio::time::timeout;

use super::Args;
use crate::screen::Screen;
use crate::signals::Signals;
use crate::{exit_code, terminal};

/// Events of so short a time are drawn together.
const TOGETHER: Duration = Duration::from_millis(50);

/// Draws until it is interrupted; returns the exit code.
pub(super) async fn watch(args: &Args) -> anyhow::Result<u8> {
    let client = args.server.client().await?;
    // From before the first look, so that nothing is missed in between.
    let events = client.events(args.session.as_deref()).await?;
    let mut signals = Signals::listen().context("cannot listen for signals")?;
    let resized = terminal::size_changes().context("cannot listen for signals")?;
    let screen = Screen::enter()?;
    let mut watching = Watching { args, client, events, resized, screen };
    tokio::select! {
        signal = signals.next() => Ok(exit_code::of_signal(signal)),
        failed = watching.draw_for_ever() => match failed? {},
    }
}

struct Watching<'a> {
    args: &'a Args,
    client: Client,
    events: Events,
    resized: Signal,
    screen: Screen,
}

impl Watching<'_> {
    async fn draw_for_ever(&mut self) -> anyhow::Result<Infallible> {
        loop {
            let page = self.client.list(&self.args.query()).await?;
            self.screen.draw(&super::listing(&page))?;
            // What runs grows older, and writes without telling anybody.
            if let Ok(news) = timeout(self.args.interval, self.until_news()).await {
                news?;
            }
        }
    }

    async fn until_news(&mut self) -> anyhow::Result<()> {
        tokio::select! {
            news = self.events.next() => { news?; }
            _ = self.resized.recv() => return Ok(()),
        }
        match timeout(TOGETHER, all(&mut self.events)).await {
            Ok(failed) => match failed? {},
            Err(_) => Ok(()),
        }
    }
}

async fn all(events: &mut Events) -> anyhow::Result<Infallible> {
    loop {
        events.next().await?;
    }
}
