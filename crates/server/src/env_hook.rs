//! The operator's command that prints the environment for commands: `serve --env-hook`.
//!
//! It runs at each start, by `sh`, with the server's environment, and prints a JSON object or
//! `NAME=VALUE` with a NUL behind each, which takes the place of that environment. It runs in an
//! engine of its own, so that nothing of it is listed, outlives it or can hang a start.

mod printed;

use std::ffi::{OsStr, OsString};
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use lastbyte_engine::{
    Cause, Ending, Engine, EnvEdit, Environment, EnvironmentProvider, Launch, LogSource, Process,
    ProviderError, Settings, StartError, Status, StopPolicy, Streams, Timeouts, Verb,
};
use lastbyte_output::log::Stream;
use lastbyte_output::views::raw::{self, Segment};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

pub use printed::BadEnvironment;

/// How long a hook may take, including its start.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// More than the kernel takes as an environment.
const MOST: usize = 4 << 20;
/// Stderr bytes quoted in an error.
const MOST_OF_COMPLAINT: usize = 300;

/// Runs the hook. Nothing of it is left when that is dropped with its runtime.
#[derive(Debug)]
pub struct EnvHook {
    command: OsString,
    engine: Engine,
    patience: Duration,
}

/// Why a hook gave no environment. The text includes its cause: it becomes a warning.
#[derive(Debug, thiserror::Error)]
pub enum HookError {
    #[error("cannot start it: {0}")]
    Start(StartError),
    #[error("timed out after {patience:?}")]
    TimedOut { patience: Duration },
    #[error("{how}{complaint}")]
    Failed { how: String, complaint: String },
    #[error("cannot read its output: {0}")]
    Unreadable(io::Error),
    #[error("it printed {0}")]
    Printed(BadEnvironment),
    #[error("internal error (please report it)")]
    Broken,
}

impl EnvHook {
    /// Keeps what the hook prints in `state`, for as long as it runs. Must be called on a runtime.
    pub fn new(
        command: impl Into<OsString>,
        state: impl Into<PathBuf>,
        patience: Duration,
    ) -> io::Result<Self> {
        // Its environment comes with each launch.
        let environment = Environment::default();
        let settings = Settings { environment, spawners: Some(1), ..Settings::new(state) };
        Ok(Self { command: command.into(), engine: Engine::new(settings)?, patience })
    }

    async fn ask(&self, own: &Environment) -> Result<Environment, HookError> {
        // In its own task, which cleans up even if the caller has stopped waiting.
        let running = tokio::spawn(run(self.engine.clone(), self.launch(own), self.patience));
        let late = |_| HookError::TimedOut { patience: self.patience };
        timeout(self.patience, running).await.map_err(late)?.unwrap_or(Err(HookError::Broken))
    }

    fn launch(&self, own: &Environment) -> Launch {
        let set = |(name, value): (&OsStr, &OsStr)| EnvEdit::Set(name.into(), value.into());
        Launch {
            cwd: Some(".".into()), // the server's, where a relative path of the operator's begins
            env: own.iter().map(set).collect(),
            streams: Streams::Split,
            timeouts: Timeouts { wall: Some(self.patience), idle: None },
            stop: StopPolicy::KILL,
            ..Launch::argv(["sh".into(), "-c".into(), self.command.clone()])
        }
    }
}

impl EnvironmentProvider for EnvHook {
    fn environment<'a>(
        &'a self,
        own: &'a Environment,
    ) -> Pin<Box<dyn Future<Output = Result<Environment, ProviderError>> + Send + 'a>> {
        Box::pin(async move {
            self.ask(own).await.map_err(|error| {
                let text =
                    format!("--env-hook failed: {error}; the variables it prints are not set");
                tracing::warn!("{text}");
                ProviderError(text.into())
            })
        })
    }
}

async fn run(engine: Engine, launch: Launch, patience: Duration) -> Result<Environment, HookError> {
    let process = engine.start(launch).await.map_err(HookError::Start)?.process;
    let ending = process.ended().await;
    let printed = judge(&process, &ending, patience).await;
    tokio::spawn(clean_up(engine, process));
    printed
}

async fn judge(
    process: &Process,
    ending: &Ending,
    patience: Duration,
) -> Result<Environment, HookError> {
    let how = match (ending.status, ending.cause) {
        (_, Cause::TimedOut { .. }) => return Err(HookError::TimedOut { patience }),
        (Status::Exited(0), _) => {
            let printed = read(process, Stream::Out, MOST).await?;
            return printed::parse(&printed).map_err(HookError::Printed);
        }
        (Status::Exited(code), _) => format!("exit code {code}"),
        (Status::Signalled { signal, .. }, _) => format!("ended by {signal}"),
        (Status::Lost(why), _) => format!("exit status unknown ({why})"),
    };
    let complaint = read(process, Stream::Err, MOST_OF_COMPLAINT).await?;
    let complaint = match complaint.trim_ascii() {
        [] => String::new(),
        said => format!(": {}", String::from_utf8_lossy(said)),
    };
    Err(HookError::Failed { how, complaint })
}

async fn read(process: &Process, stream: Stream, most: usize) -> Result<Vec<u8>, HookError> {
    let source = LogSource::output(process.reader(), process.snapshot()).only(stream);
    let read = spawn_blocking(move || raw::since(&source, 0, most));
    let read = read.await.map_err(|_| HookError::Broken)?.map_err(HookError::Unreadable)?;
    let bytes = read.segments.into_iter().map(|segment| match segment {
        Segment::Bytes { bytes, .. } => bytes,
        Segment::Dropped(_) => Vec::new(),
    });
    Ok(bytes.collect::<Vec<_>>().concat())
}

/// Whatever the hook left behind goes, and then its log.
async fn clean_up(engine: Engine, process: Process) {
    process.stop_by(StopPolicy::KILL, Verb::Close).await;
    process.wait_for(|_| false).await;
    // What cannot be removed is removed by the sweep.
    _ = engine.forget(process.id());
}
