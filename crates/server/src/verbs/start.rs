//! Starting a process, and in the same call waiting for it.

use lastbyte_engine::Started;
use lastbyte_wire::{Error, StartAnswer, StartRequest, View};

use super::read::{self, ReadRequest};
use super::{refusal, wait};
use crate::{App, from_wire, to_wire};

/// Starts what the request says, or finds what its key has started. A caller that goes away
/// leaves the process running.
pub async fn start(app: &App, request: &StartRequest) -> Result<StartAnswer, Error> {
    let conditions = request.wait.as_ref().map(wait::Conditions::new).transpose()?;
    let shown = ReadRequest::whole_log(request.view.unwrap_or(View::HeadTail), request.max_bytes)?;
    let mut launch = from_wire::launch(request, &app.sandboxing)?;
    app.scope.bind(&mut launch)?;
    let permit = conditions.as_ref().map(|_| app.begin_wait()).transpose()?;
    let started = app.engine.start(launch).await;
    let started = started.map_err(|error| refusal::from_start(&error))?;
    let Started { process, attached, warnings } = started;
    app.client_of.add(&process);
    let warnings = warnings.iter().map(ToString::to_string).collect();
    let (met, snapshot) = match conditions {
        Some(conditions) => {
            let (met, snapshot) = wait::until(app, &process, conditions).await?;
            (Some(met), snapshot)
        }
        None => (None, process.snapshot()),
    };
    drop(permit);
    let output = match met {
        Some(_) => Some(read::view(app, &process, &snapshot, shown).await?),
        None => None,
    };
    let process = to_wire::process(&process, &snapshot);
    Ok(StartAnswer { process, attached, warnings, wait: met, output })
}
