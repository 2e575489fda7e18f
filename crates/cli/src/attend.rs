//! Standing by a command: its output is delivered and signals are passed on until both the
//! command and its output have come to their end.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use lastbyte_engine::{Ending, Phase, Process, Signal, StopPolicy, Streams, Verb};
use lastbyte_output::log::Stream;
use tokio::time::timeout;

use crate::deliver::{self, DeliverError, Delivered, Outcome};
use crate::signals::Signals;
use crate::{exit_code, tell, terminal};

/// The command has ended and its output was written as far as somebody reads it.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) ending: Arc<Ending>,
    /// How many bytes of output the log did not keep.
    lost: u64,
}

/// A signal came after the command's end, when only we were left to be meant.
#[derive(Debug, thiserror::Error)]
#[error("ended by {signal} before all of the command's output was written")]
pub(crate) struct CutShort {
    pub(crate) signal: Signal,
}

/// How long a command has to notice that nobody reads its output.
const BROKEN_PIPE_GRACE: Duration = Duration::from_secs(1);

/// Begins delivering the output of a process and waits for its end. Must be called on a runtime.
pub(crate) async fn attend(
    process: &Process,
    streams: Streams,
    signals: &mut Signals,
) -> anyhow::Result<Finished> {
    // Both begin at the first byte, which stays until both have written it.
    let pin = process.pin().context("the log is not held back for its readers")?;
    let start = |stream| {
        deliver::start(process, stream, pin.clone()).context("cannot start a thread for output")
    };
    let stdout = start(Stream::Out)?;
    let stderr = match streams {
        Streams::Merged | Streams::Pty(_) => None,
        Streams::Split => Some(start(Stream::Err)?),
    };
    drop(pin);
    let mut finished = pin!(until_finished(process, stdout, stderr));
    let mut passed_on = 0;
    let mut resized = terminal::size_changes().context("cannot listen for signals")?;
    loop {
        tokio::select! {
            finished = &mut finished => return finished,
            _ = resized.recv() => follow_size(process, streams).await,
            signal = signals.next() => {
                passed_on += 1;
                pass_on(process, signal, passed_on).await?;
            }
        }
    }
}

/// Gives the command's terminal the size of ours.
async fn follow_size(process: &Process, streams: Streams) {
    if let Streams::Pty(_) = streams {
        // A command that has just exited needs no size.
        _ = process.resize(terminal::size()).await;
    }
}

/// The first signal goes to the command, any other kills its whole tree.
async fn pass_on(process: &Process, signal: Signal, nth: u32) -> Result<(), CutShort> {
    match process.snapshot().phase {
        Phase::Ended(_) => return Err(CutShort { signal }),
        Phase::Running | Phase::Draining if nth == 1 => {
            // If the owner is gone there is nobody left to tell, and the ending says so.
            _ = process.signal(signal).await;
        }
        Phase::Running | Phase::Draining => stop(process, StopPolicy::KILL),
    }
    Ok(())
}

/// Waits for both streams side by side, then for the ending.
async fn until_finished(
    process: &Process,
    stdout: Outcome,
    stderr: Option<Outcome>,
) -> anyhow::Result<Finished> {
    let merged = stderr.is_none();
    let stderr = async {
        match stderr {
            Some(stderr) => until_delivered(process, stderr, Stream::Err).await,
            None => Ok(None),
        }
    };
    let (stdout, stderr) = tokio::join!(until_delivered(process, stdout, Stream::Out), stderr);
    let ending = process.ended().await;
    let (stdout, stderr) = (stdout?, stderr?);
    let on_stderr = if merged { stdout } else { stderr };
    if on_stderr.is_some_and(|delivered| delivered.mid_line) {
        tell::after_a_partial_line();
    }
    let lost = stdout.into_iter().chain(stderr).map(|delivered| delivered.lost).max();
    Ok(Finished { ending, lost: lost.unwrap_or(0) })
}

/// `None` when nobody reads the stream. Without a reader of standard output, or when it cannot be
/// written, the command is stopped; standard error is not missed.
async fn until_delivered(
    process: &Process,
    outcome: Outcome,
    stream: Stream,
) -> anyhow::Result<Option<Delivered>> {
    let outcome = outcome.await.context("a thread that writes output has failed");
    match (outcome, stream) {
        (Ok(Ok(delivered)), _) => Ok(Some(delivered)),
        (Ok(Err(DeliverError::ReaderGone)), Stream::Err) => Ok(None),
        (Ok(Err(DeliverError::ReaderGone)), Stream::Out) => {
            tokio::spawn(break_pipe(process.clone()));
            Ok(None)
        }
        (Ok(Err(error)), _) => {
            stop_leader(process, process.about().stop);
            Err(error.into())
        }
        (Err(error), _) => {
            stop_leader(process, process.about().stop);
            Err(error)
        }
    }
}

/// Does to the command what the kernel does to whoever writes where nobody reads. What it has left
/// in other groups is let alone.
async fn break_pipe(process: Process) {
    // An owner that is gone has nobody to signal.
    _ = process.signal(Signal::PIPE).await;
    if timeout(BROKEN_PIPE_GRACE, process.ended()).await.is_err() {
        _ = process.signal(Signal::KILL).await; // as above
    }
}

/// Stops a command that still runs; what one that has exited left behind is let alone.
fn stop_leader(process: &Process, policy: StopPolicy) {
    match process.snapshot().phase {
        Phase::Running => stop(process, policy),
        Phase::Draining | Phase::Ended(_) => {}
    }
}

/// Goes on by itself, so that signals are heard meanwhile; the ending tells what came of it.
fn stop(process: &Process, policy: StopPolicy) {
    let process = process.clone();
    tokio::spawn(async move { process.stop_by(policy, Verb::Stop).await });
}

impl Finished {
    pub(crate) fn exit_code(&self) -> anyhow::Result<u8> {
        if self.lost > 0 {
            bail!("{} bytes of the command's output could not be kept and are lost", self.lost);
        }
        exit_code::of_ending(&self.ending).context("cannot tell how the command ended")
    }
}
