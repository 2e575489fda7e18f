//! What a lane has started ends with it, however the lane ends.

use std::pin::Pin;

use lastbyte_engine::{Engine, Launch, Process, StartError, Started, StopPolicy, Verb};
use tokio::runtime::Handle;

/// A command that is being started or runs. Dropped before it was let go, it is killed with its
/// whole tree, as soon as it is there.
pub(super) struct Leash {
    held: Held,
    /// To kill it there: a lane may be dropped where no runtime is entered.
    runtime: Handle,
}

enum Held {
    Starting(Starting),
    Started(Process),
    Nothing,
}

type Starting = Pin<Box<dyn Future<Output = Result<Started, StartError>> + Send>>;

impl Leash {
    /// Begins to start it. Must be called on a runtime.
    pub(super) fn new(engine: Engine, launch: Launch) -> Self {
        let starting = Box::pin(async move { engine.start(launch).await });
        Self { held: Held::Starting(starting), runtime: Handle::current() }
    }

    /// Waits until it runs. Cancel-safe.
    pub(super) async fn started(&mut self) -> Result<Process, StartError> {
        let process = match &mut self.held {
            Held::Starting(starting) => match starting.await {
                Ok(started) => started.process,
                Err(error) => {
                    self.held = Held::Nothing;
                    return Err(error);
                }
            },
            Held::Started(process) => return Ok(process.clone()),
            Held::Nothing => return Err(StartError::Closed),
        };
        self.held = Held::Started(process.clone());
        Ok(process)
    }

    /// It has come to its end, or somebody else sees to that.
    pub(super) fn let_go(mut self) {
        self.held = Held::Nothing;
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        match std::mem::replace(&mut self.held, Held::Nothing) {
            Held::Starting(starting) => {
                self.runtime.spawn(async move {
                    if let Ok(started) = starting.await {
                        kill(started.process).await;
                    }
                });
            }
            Held::Started(process) => {
                self.runtime.spawn(kill(process));
            }
            Held::Nothing => {}
        }
    }
}

async fn kill(process: Process) {
    process.stop_by(StopPolicy::KILL, Verb::Close).await;
}
