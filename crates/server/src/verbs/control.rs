//! The small verbs that act on a process: signal, stop, resize and forget.

use std::time::Duration;

use lastbyte_engine::{Process, Verb};
use lastbyte_wire::{
    Error, ErrorCode, ForgetQuery, ResizeRequest, SignalAnswer, SignalRequest, StopProof,
    StopRequest,
};
use tokio::time::timeout;

use super::refusal;
use crate::{App, from_wire, to_wire};

/// After a stop is proved, what is left in the pipes is still to be stored.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// Signals the process group, or what is left of it.
pub async fn signal(process: &Process, request: &SignalRequest) -> Result<SignalAnswer, Error> {
    let signal = from_wire::signal(&request.signal)?;
    match process.signal(signal).await {
        Ok(delivery) => Ok(SignalAnswer { delivered: to_wire::delivered(delivery) }),
        Err(error) => Err(Error::new(ErrorCode::Failed, error.to_string())),
    }
}

/// Stops the whole tree. Continues when the caller goes away.
pub async fn stop(process: &Process, request: &StopRequest) -> Result<StopProof, Error> {
    let policy = from_wire::stop_policy(request.stop.as_ref(), process.spec().stop)?;
    Ok(to_wire::stop_proof(process.stop_by(policy, Verb::Stop).await))
}

/// Changes the size of the terminal.
pub async fn resize(process: &Process, request: &ResizeRequest) -> Result<(), Error> {
    let size = from_wire::window_size(request.rows, request.cols)?;
    process.resize(size).await.map_err(refusal::from_resize)
}

/// Removes an ended process and its log.
pub async fn forget(app: &App, process: &Process, query: &ForgetQuery) -> Result<(), Error> {
    if query.stop == Some(true) {
        process.stop(Verb::Stop).await;
        // What could not be stopped is refused below, with its reason.
        _ = timeout(DRAIN_TIMEOUT, process.wait_for(|_| false)).await;
    }
    app.engine.forget(process.id()).map_err(|error| refusal::from_forget(&error))
}
