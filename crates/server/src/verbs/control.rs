//! The small verbs that act on a process: signal, stop, resize and forget. All but resize can act on
//! several at once.

use std::time::Duration;

use futures_util::future::join_all;
use lastbyte_engine::{Keyboard, Process, StopPolicy, Verb, stop_all};
use lastbyte_wire::{
    Error, ErrorCode, ForgetManyRequest, ForgetQuery, ManyAnswer, Outcome, ResizeRequest,
    Selection, SignalAnswer, SignalManyRequest, SignalRequest, StopManyRequest, StopProof,
    StopRequest,
};
use tokio::time::timeout;

use super::refusal;
use super::select::{Selected, missing, outcome};
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
    let stopped = stop_all(vec![(process.clone(), policy)], Verb::Stop).await;
    let proof = stopped.into_iter().next().map(|(_, proof)| to_wire::stop_proof(proof));
    proof.ok_or_else(|| refusal::broken("stopping the process"))
}

/// The same for several, side by side. Some may have no proof but an error.
pub async fn stop_many(app: &App, request: &StopManyRequest) -> Result<ManyAnswer, Error> {
    // Also if nobody is selected.
    from_wire::stop_policy(request.stop.as_ref(), StopPolicy::default())?;
    let mut policies = Vec::new();
    let mut outcomes = Vec::new();
    for found in alive(app, &request.select).await?.0 {
        let outcome = match found {
            Ok(process) => {
                let policy = from_wire::stop_policy(request.stop.as_ref(), process.spec().stop)?;
                let mut outcome = outcome(&process);
                let snapshot = process.snapshot();
                outcome.ended_before = snapshot.ending().map(|it| to_wire::ending(it, &process));
                policies.push((process, policy));
                outcome
            }
            Err(given) => missing(given),
        };
        outcomes.push(outcome);
    }
    let mut stopped = stop_all(policies, Verb::Stop).await.into_iter();
    for outcome in outcomes.iter_mut().filter(|outcome| outcome.error.is_none()) {
        outcome.proof = stopped.next().map(|(_, proof)| to_wire::stop_proof(proof));
    }
    Ok(ManyAnswer { processes: outcomes, silent_nodes: None })
}

/// Those selected. Without ids, only those of which something is alive.
async fn alive(app: &App, selection: &Selection) -> Result<Selected, Error> {
    let selected = Selected::new(app, selection)?;
    Ok(if selection.ids.is_some() { selected } else { selected.with_somebody().await })
}

/// Signals the groups of several.
pub async fn signal_many(app: &App, request: &SignalManyRequest) -> Result<ManyAnswer, Error> {
    let asked = SignalRequest { signal: request.signal.clone() };
    from_wire::signal(&asked.signal)?;
    let signalled = alive(app, &request.select).await?.0.into_iter().map(async |found| {
        let process = match found {
            Ok(process) => process,
            Err(given) => return missing(given),
        };
        let outcome = outcome(&process);
        match signal(&process, &asked).await {
            Ok(answer) => Outcome { delivered: Some(answer.delivered), ..outcome },
            Err(error) => Outcome { error: Some(error), ..outcome },
        }
    });
    Ok(ManyAnswer { processes: join_all(signalled).await, silent_nodes: None })
}

/// Removes several ended processes and their logs.
pub async fn forget_many(app: &App, request: &ForgetManyRequest) -> Result<ManyAnswer, Error> {
    let selected = Selected::new(app, &request.select)?.0;
    let query = ForgetQuery { stop: request.stop };
    let forgotten = selected.into_iter().map(async |found| {
        let process = match found {
            Ok(process) => process,
            Err(given) => return missing(given),
        };
        let error = forget(app, &process, &query).await.err();
        Outcome { error, ..outcome(&process) }
    });
    Ok(ManyAnswer { processes: join_all(forgotten).await, silent_nodes: None })
}

/// Changes the size of the terminal.
pub async fn resize(process: &Process, request: &ResizeRequest) -> Result<(), Error> {
    resize_by(process, None, request).await
}

/// The same by the client that has the keyboard, if one has it.
pub async fn resize_by(
    process: &Process,
    keyboard: Option<&Keyboard>,
    request: &ResizeRequest,
) -> Result<(), Error> {
    let size = from_wire::window_size(request.rows, request.cols)?;
    let resized = match keyboard {
        Some(keyboard) => keyboard.resize(size).await,
        None => process.resize(size).await,
    };
    let resized = resized.map_err(refusal::from_resize);
    resized.map_err(|error| refusal::naming_holder(process, error))
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
