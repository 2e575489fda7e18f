//! A command in the foreground: writes its output and passes standard input and signals on, until
//! the command and its output have ended.

use std::io;
use std::pin::pin;
use std::time::Duration;

use anyhow::{Context, bail};
use lastbyte_client::wire;
use lastbyte_engine::{Phase, Process, Signal, StdinOpen, StdinState, StopPolicy, Streams, Verb};
use lastbyte_output::log::Stream;
use lastbyte_server::to_wire;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use crate::attach::input::{self, Pass, StdinPiece};
use crate::copy_output::{self, DeliverError, Delivered};
use crate::signals::{Interrupted, Signals};
use crate::{exit_code, format, print, stdio};

/// The command has ended, and its output was written as far as it has a reader.
#[derive(Debug)]
pub(crate) struct FinishedRun {
    pub(crate) ending: wire::Ending,
    /// How many bytes of output the log did not keep.
    lost: u64,
}

/// What becomes of one stream.
trait Delivery: Future<Output = Result<Delivered, DeliverError>> {}

impl<T: Future<Output = Result<Delivered, DeliverError>>> Delivery for T {}

/// How long a command has to notice that nobody reads its output.
const BROKEN_PIPE_GRACE: Duration = Duration::from_secs(1);

/// Begins delivering the output of a process and waits for its end. Must be called on a runtime.
pub(crate) async fn run_to_end(
    process: &Process,
    streams: Streams,
    signals: &mut Signals,
) -> anyhow::Result<FinishedRun> {
    // Both begin at the first byte, which stays until both have written it.
    let pin = process.hold().context("cannot hold the log for its readers")?;
    let deliver = |stream| copy_output::deliver(process, stream, pin.clone());
    let stdout = deliver(Stream::Out);
    let stderr = match streams {
        Streams::Merged | Streams::Pty(_) => None,
        Streams::Split => Some(deliver(Stream::Err)),
    };
    drop(pin);
    let mut finished = pin!(until_finished(process, stdout, stderr));
    let mut passed_on = 0;
    let mut resized = stdio::size_changes()?;
    loop {
        tokio::select! {
            finished = &mut finished => return finished,
            // A command that has just exited needs no size.
            _ = resized.recv(), if matches!(streams, Streams::Pty(_)) => {
                _ = process.resize(stdio::size()).await;
            }
            signal = signals.next() => {
                passed_on += 1;
                pass_on(process, signal, passed_on).await?;
            }
        }
    }
}

/// The first signal goes to the command, any other kills its whole tree.
async fn pass_on(process: &Process, signal: Signal, nth: u32) -> Result<(), Interrupted> {
    match process.snapshot().phase {
        Phase::Ended(_) => {
            return Err(Interrupted {
                signal,
                what: "not all of the command's output was written",
            });
        }
        Phase::Running | Phase::Draining if nth == 1 => {
            // If the owner task is gone, the ending says so.
            _ = process.signal(signal).await;
        }
        Phase::Running | Phase::Draining => stop(process, StopPolicy::KILL),
    }
    Ok(())
}

/// Waits for both streams side by side, then for the ending.
async fn until_finished(
    process: &Process,
    stdout: impl Delivery,
    stderr: Option<impl Delivery>,
) -> anyhow::Result<FinishedRun> {
    let merged = stderr.is_none();
    let stderr = async {
        match stderr {
            Some(stderr) => until_delivered(process, stderr, Stream::Err).await,
            None => Ok(None),
        }
    };
    let (stdout, stderr) = tokio::join!(until_delivered(process, stdout, Stream::Out), stderr);
    let ending = to_wire::ending(&*process.ended().await, process);
    let (stdout, stderr) = (stdout?, stderr?);
    let on_stderr = if merged { stdout } else { stderr };
    if on_stderr.is_some_and(|delivered| delivered.mid_line) {
        print::break_line_first();
    }
    let lost = stdout.into_iter().chain(stderr).map(|delivered| delivered.lost).max();
    Ok(FinishedRun { ending, lost: lost.unwrap_or(0) })
}

/// `None` when nobody reads the stream. Without a reader of standard output, or when it cannot be
/// written, the command is stopped; standard error is not missed.
async fn until_delivered(
    process: &Process,
    delivery: impl Delivery,
    stream: Stream,
) -> anyhow::Result<Option<Delivered>> {
    let error = match (delivery.await, stream) {
        (Ok(delivered), _) => return Ok(Some(delivered)),
        (Err(DeliverError::ReaderGone), Stream::Err) => return Ok(None),
        (Err(DeliverError::ReaderGone), Stream::Out) => {
            tokio::spawn(break_pipe(process.clone()));
            return Ok(None);
        }
        (Err(error), _) => error,
    };
    // What an exited command left running is left alone.
    if matches!(process.snapshot().phase, Phase::Running) {
        stop(process, process.spec().stop);
    }
    Err(error.into())
}

/// Does what the kernel does to a program that writes to a closed pipe. Processes in other groups
/// are left alone.
async fn break_pipe(process: Process) {
    // If the owner task is gone, there is no process to signal.
    _ = process.signal(Signal::PIPE).await;
    if timeout(BROKEN_PIPE_GRACE, process.ended()).await.is_err() {
        _ = process.signal(Signal::KILL).await; // as above
    }
}

/// Runs in its own task, so that signals are handled meanwhile; the ending has the result.
fn stop(process: &Process, policy: StopPolicy) {
    let process = process.clone();
    tokio::spawn(async move { process.stop_by(policy, Verb::Stop).await });
}

impl FinishedRun {
    pub(crate) fn exit_code(&self) -> anyhow::Result<u8> {
        if self.lost > 0 {
            let one = "byte of the command's output was lost";
            bail!(format::count(self.lost, one, "bytes of the command's output were lost"));
        }
        exit_code::from_ending(&self.ending)
    }
}

/// Begins to pass standard input on, if the process takes any. Must be called on a runtime.
pub(crate) fn pass_stdin_on(process: &Process) -> io::Result<()> {
    if let Some(state) = process.stdin() {
        let (input, _) = input::start(None, Pass::On)?;
        tokio::spawn(copy_stdin(process.clone(), state, input));
    }
    Ok(())
}

/// Until the end of the input, or until the command takes no more.
async fn copy_stdin(
    process: Process,
    mut state: watch::Receiver<StdinState>,
    mut input: mpsc::Receiver<StdinPiece>,
) {
    let mut accepted = 0;
    loop {
        let is_open = |state: &StdinState| state.open == StdinOpen::Open;
        let news = state.wait_for(|state| state.written == accepted || !is_open(state));
        if !news.await.is_ok_and(|state| is_open(&state)) {
            return;
        }
        let written = match input.recv().await {
            Some(StdinPiece::Bytes(bytes)) => process.write(bytes, None).await,
            Some(StdinPiece::End) | None => process.write_and_close(Vec::new(), None).await,
        };
        let Ok(written) = written else { return };
        accepted = written.accepted;
    }
}
