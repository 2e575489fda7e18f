//! Starting a process, and in the same call waiting for it.

use lastbyte_engine::{Launch, Started};
use lastbyte_wire::{Error, StartAnswer, StartRequest, View};

use super::read::{self, Asked};
use super::{refusal, wait};
use crate::{App, from_wire, to_wire};

/// Starts what the request says, or finds what its key has started. A caller that goes away
/// leaves the process running.
pub async fn start(app: &App, request: &StartRequest) -> Result<StartAnswer, Error> {
    let conditions = request.wait.as_ref().map(wait::Conditions::new).transpose()?;
    let shown = Asked::of(request.view.unwrap_or(View::HeadTail), request.max_bytes)?;
    let (launch, input) = from_wire::launch(request)?;
    let permit = conditions.as_ref().map(|_| app.begin_wait()).transpose()?;
    let Started { process, attached, warnings } = start_with(app, launch, input).await?;
    let warnings = warnings.iter().map(ToString::to_string).collect();
    let (met, snapshot) = match conditions {
        Some(conditions) => {
            let (met, snapshot) = wait::until(&process, conditions).await?;
            (Some(met), snapshot)
        }
        None => (None, process.snapshot()),
    };
    drop(permit);
    let output = match met {
        Some(_) => Some(read::view(&process, &snapshot, shown).await?),
        None => None,
    };
    let process = to_wire::process(process.about(), &snapshot);
    Ok(StartAnswer { process, attached, warnings, wait: met, output })
}

/// In a task of its own: a caller that goes away after the start must not keep its input.
async fn start_with(app: &App, launch: Launch, input: Option<Vec<u8>>) -> Result<Started, Error> {
    let engine = app.engine.clone();
    let Some(input) = input else {
        return engine.start(launch).await.map_err(|error| refusal::of_start(&error));
    };
    let starting = tokio::spawn(async move {
        let started = engine.start(launch).await.map_err(|error| refusal::of_start(&error))?;
        // From the first byte on, so that whoever attaches writes nothing twice. One that has
        // exited already, or has closed its input, reads none of it: that is its own affair.
        _ = started.process.write_and_close(input, Some(0)).await;
        Ok(started)
    });
    starting.await.unwrap_or_else(|_| Err(refusal::broken("the start")))
}
