//! A line on the terminal that says how what is waited for gets on, for as long as it is waited for.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use lastbyte_client::Client;
use lastbyte_client::wire::Process;
use rustix::stdio::stderr;
use tokio::time::{Instant, sleep_until};

use crate::signals::{Interrupted, Signals};
use crate::{in_words, own_streams, process_id, terminal};

/// Often enough for a clock of seconds.
const EVERY: Duration = Duration::from_millis(500);
const CLEAR: &str = "\r\x1b[K";

/// Waits, and tells of the process meanwhile if standard error is a terminal.
pub(crate) async fn while_waiting<T>(
    client: &Client,
    id: &str,
    waiting: impl Future<Output = T>,
) -> anyhow::Result<T> {
    if !rustix::termios::isatty(stderr()) {
        return Ok(waiting.await);
    }
    let mut signals = Signals::listen().context("cannot listen for signals")?;
    let _line = Line;
    tokio::select! {
        answer = waiting => Ok(answer),
        signal = signals.next() => Err(Interrupted { signal, what: "wait" }.into()),
        () = tell_of(client, id) => unreachable!("it goes on for ever"),
    }
}

async fn tell_of(client: &Client, id: &str) {
    let begun = Instant::now();
    for nth in 1.. {
        sleep_until(begun + EVERY * nth).await;
        // A server that does not answer this will not answer the wait either, which then says why.
        if let Ok(process) = client.show(id).await {
            write(&format!("{CLEAR}{}", in_one_line(&process)));
        }
    }
}

fn in_one_line(process: &Process) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let age = now.saturating_sub(Duration::from_nanos(process.started_unix_ns));
    let line = format!(
        "waiting for {}: {} for {}, {} of output",
        process_id::short(&process.id),
        in_words::phase(process.phase),
        in_words::age(age),
        in_words::size(process.total)
    );
    // A line that is wrapped could not be cleared.
    line.chars().take(usize::from(terminal::size().cols).saturating_sub(1)).collect()
}

/// Cleared when dropped.
struct Line;

impl Drop for Line {
    fn drop(&mut self) {
        write(CLEAR);
    }
}

fn write(text: &str) {
    // Whoever does not see it misses nothing.
    _ = own_streams::write_all(stderr(), text.as_bytes());
}
