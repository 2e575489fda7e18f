//! The signals that are passed on to the command.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use lastbyte_engine::Signal;
use tokio::signal::unix::{self, SignalKind};

const PASSED_ON: [Signal; 4] = [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT];

/// Hears the signals, each once, from the moment it was made.
#[derive(Debug)]
pub(crate) struct Signals {
    heard: Vec<(Signal, unix::Signal)>,
}

impl Signals {
    /// A signal that is ignored stays so: whoever started us (`nohup`) wanted that. Must be
    /// called on a runtime.
    pub(crate) fn listen() -> io::Result<Self> {
        let ignored = ignored();
        let concerned = PASSED_ON.into_iter().filter(|signal| !ignored.contains(*signal));
        let heard = concerned.map(|signal| {
            let kind = SignalKind::from_raw(signal.number());
            Ok((signal, unix::signal(kind)?))
        });
        Ok(Self { heard: heard.collect::<io::Result<_>>()? })
    }

    /// The next signal. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Signal {
        poll_fn(|context| {
            for (signal, arrivals) in &mut self.heard {
                if let Poll::Ready(Some(())) = arrivals.poll_recv(context) {
                    return Poll::Ready(*signal);
                }
            }
            Poll::Pending
        })
        .await
    }
}

/// Signals as a bit each, the first for number 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Mask(u64);

impl Mask {
    fn contains(self, signal: Signal) -> bool {
        self.0 >> (signal.number() - 1) & 1 == 1
    }
}

/// Which signals this program ignores; none where `/proc` does not tell.
fn ignored() -> Mask {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    ignored_in(&status)
}

fn ignored_in(status: &str) -> Mask {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    Mask(mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_read_from_the_status() {
        let mask = ignored_in("Name:\tx\nSigBlk:\t0000000000004000\nSigIgn:\t0000000000001001\n");
        assert!(mask.contains(Signal::HUP) && mask.contains(Signal::PIPE));
        assert!(!mask.contains(Signal::INT) && !mask.contains(Signal::TERM));
        assert_eq!(ignored_in(""), Mask::default());
    }
}
