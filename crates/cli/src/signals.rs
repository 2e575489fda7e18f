//! The signals that are meant for the command, or for the daemon.

use std::future::poll_fn;
use std::io;
use std::task::Poll;
use std::time::Duration;

use anyhow::Context;
use lastbyte_engine::Signal;
use lastbyte_sys::own_signals;
use tokio::signal::unix::{self, SignalKind};
use tokio::time::Instant;

const PASSED_ON: [Signal; 4] = [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT];

/// Hears the signals, each once, from the moment it was made.
#[derive(Debug)]
pub(crate) struct Signals {
    heard: Vec<(Signal, unix::Signal)>,
    last: Option<(Signal, Instant)>,
}

/// A signal ended what lastbyte was doing, after the command's end or while the command runs on.
#[derive(Debug, thiserror::Error)]
#[error("interrupted by {signal}; {what}")]
pub(crate) struct Interrupted {
    pub(crate) signal: Signal,
    /// What that means for the process.
    pub(crate) what: &'static str,
}

impl Interrupted {
    pub(crate) fn while_running(signal: Signal) -> Self {
        Self { signal, what: "the process keeps running" }
    }
}

/// Two of the same signal within this time are one: `timeout` and the terminal's driver send to a
/// process and to its group.
const ECHO: Duration = Duration::from_millis(200);

impl Signals {
    /// A signal that is ignored stays ignored, as `nohup` wants it. Must be called on a runtime.
    pub(crate) fn listen() -> anyhow::Result<Self> {
        let concerned = PASSED_ON.into_iter().filter(|signal| !own_signals::ignores(*signal));
        let heard = concerned.map(|signal| {
            let kind = SignalKind::from_raw(signal.number());
            Ok((signal, unix::signal(kind)?))
        });
        let heard: io::Result<_> = heard.collect();
        Ok(Self { heard: heard.context("cannot listen for signals")?, last: None })
    }

    /// The next signal that is no echo of the last one. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Signal {
        poll_fn(|context| {
            for (signal, arrivals) in &mut self.heard {
                while let Poll::Ready(Some(())) = arrivals.poll_recv(context) {
                    let now = Instant::now();
                    if !is_echo(self.last, *signal, now) {
                        self.last = Some((*signal, now));
                        return Poll::Ready(*signal);
                    }
                }
            }
            Poll::Pending
        })
        .await
    }
}

fn is_echo(last: Option<(Signal, Instant)>, signal: Signal, now: Instant) -> bool {
    last.is_some_and(|(last, at)| last == signal && now - at < ECHO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_signal_again_at_once_is_an_echo_and_no_other_is() {
        let now = Instant::now();
        let last = Some((Signal::INT, now));
        assert!(is_echo(last, Signal::INT, now + ECHO / 2));
        assert!(!is_echo(last, Signal::INT, now + ECHO));
        assert!(!is_echo(last, Signal::TERM, now));
        assert!(!is_echo(None, Signal::INT, now));
    }
}
