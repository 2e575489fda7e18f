//! Forgetting an ended process: it and its log are gone.

use std::time::Duration;

use lastbyte_engine::{Process, Verb};
use lastbyte_wire::{Error, ForgetQuery};
use tokio::time::timeout;

use super::refusal;
use crate::App;

/// Between the proof of a stop and the end of the log lies what is left in the pipes.
const PATIENCE: Duration = Duration::from_secs(5);

pub async fn forget(app: &App, process: &Process, query: &ForgetQuery) -> Result<(), Error> {
    if query.stop == Some(true) {
        process.stop(Verb::Stop).await;
        // What could not be stopped is refused below, with its reason.
        _ = timeout(PATIENCE, process.wait_for(|_| false)).await;
    }
    app.engine.forget(process.id()).map_err(|error| refusal::of_forget(&error))
}
