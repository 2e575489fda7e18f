//! A command ends with the task that started it, however that task ends.

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use lastbyte_engine::{Engine, Launch, Process, StartError, StopPolicy, Verb};
use tokio::runtime::Handle;

/// A command that is being started or runs. If this is dropped before [`Self::disarm`], the command
/// is killed with its whole tree, as soon as it has started.
pub(crate) struct KillOnDrop {
    /// The command, when it has started; `None` if there is nothing to kill.
    process: Option<BoxFuture<'static, Result<Process, StartError>>>,
    /// To kill on: this may be dropped outside of a runtime.
    runtime: Handle,
}

impl KillOnDrop {
    /// Must be called on a runtime. The start itself begins with [`Self::started`].
    pub(crate) fn new(engine: Engine, launch: Launch) -> Self {
        let process = async move { Ok(engine.start(launch).await?.process) };
        Self { process: Some(process.boxed()), runtime: Handle::current() }
    }

    /// Waits until it runs. Cancel-safe.
    pub(crate) async fn started(&mut self) -> Result<Process, StartError> {
        let Some(process) = &mut self.process else { return Err(StartError::Closed) };
        let started = process.await;
        self.process = started.clone().ok().map(|process| ready(Ok(process)).boxed());
        started
    }

    /// It has ended, or something else stops it.
    pub(crate) fn disarm(mut self) {
        self.process = None;
    }
}

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let Some(process) = self.process.take() else { return };
        self.runtime.spawn(async move {
            if let Ok(process) = process.await {
                process.stop_by(StopPolicy::KILL, Verb::Close).await;
            }
        });
    }
}
