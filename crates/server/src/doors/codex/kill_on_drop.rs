//! A command ends with the task that started it, however that task ends.

use std::pin::Pin;

use lastbyte_engine::{Engine, Launch, Process, StartError, Started, StopPolicy, Verb};
use tokio::runtime::Handle;

/// A command that is being started or runs. If this is dropped before [`Self::disarm`], the command
/// is killed with its whole tree, as soon as it has started.
pub(super) struct KillOnDrop {
    state: State,
    /// To kill on: this may be dropped outside of a runtime.
    runtime: Handle,
}

enum State {
    Starting(Starting),
    Started(Process),
    Disarmed,
}

type Starting = Pin<Box<dyn Future<Output = Result<Started, StartError>> + Send>>;

impl KillOnDrop {
    /// Must be called on a runtime. The start itself begins with [`Self::started`].
    pub(super) fn new(engine: Engine, launch: Launch) -> Self {
        let starting = Box::pin(async move { engine.start(launch).await });
        Self { state: State::Starting(starting), runtime: Handle::current() }
    }

    /// Waits until it runs. Cancel-safe.
    pub(super) async fn started(&mut self) -> Result<Process, StartError> {
        let started = match &mut self.state {
            State::Starting(starting) => starting.await,
            State::Started(process) => return Ok(process.clone()),
            State::Disarmed => return Err(StartError::Closed),
        };
        let process = started.map(|started| started.process);
        self.state = process.as_ref().map_or(State::Disarmed, |it| State::Started(it.clone()));
        process
    }

    /// It has ended, or something else stops it.
    pub(super) fn disarm(mut self) {
        self.state = State::Disarmed;
    }
}

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        match std::mem::replace(&mut self.state, State::Disarmed) {
            State::Starting(starting) => {
                self.runtime.spawn(async move {
                    if let Ok(started) = starting.await {
                        kill(started.process).await;
                    }
                });
            }
            State::Started(process) => {
                self.runtime.spawn(kill(process));
            }
            State::Disarmed => {}
        }
    }
}

async fn kill(process: Process) {
    process.stop_by(StopPolicy::KILL, Verb::Close).await;
}
