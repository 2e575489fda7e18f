//! Starting a process, and in the same call waiting for it.

use std::fmt::Debug;
use std::sync::Arc;

use lastbyte_engine::{Engine, Launch, StartError, Started};
use lastbyte_wire::{Error, StartAnswer, StartRequest, View};
use tokio::sync::Mutex;

use super::read::{self, ReadRequest};
use super::{refusal, wait};
use crate::{App, from_wire, to_wire};

/// A start that is claimed for this server elsewhere: whether it may still make it.
pub trait Claim: Debug + Send + Sync {
    /// Held from the check until it is known whether something was started under the key.
    fn turn(&self) -> &Mutex<()>;

    /// Asked if the key has no process. An error is the answer.
    fn check(&self) -> Result<(), Error>;

    /// Nothing was started, and with this claim nothing will be.
    fn refused(&self);
}

/// The claim of a request, among its extensions.
#[derive(Debug, Clone)]
pub struct Claimed(pub Arc<dyn Claim>);

/// Starts what the request says, or finds what its key has started. A caller that goes away
/// leaves the process running.
pub async fn start(app: &App, request: &StartRequest) -> Result<StartAnswer, Error> {
    let conditions = request.wait.as_ref().map(wait::Conditions::new).transpose()?;
    let shown = ReadRequest::whole_log(request.view.unwrap_or(View::HeadTail), request.max_bytes)?;
    let mut launch = from_wire::launch(request, &app.sandboxing)?;
    app.scope.bind(&mut launch)?;
    let permit = conditions.as_ref().map(|_| app.begin_wait()).transpose()?;
    let started = match &app.claimed {
        // In a task of its own: a caller that goes away must not give the turn to the next one while it
        // is not known what became of this start.
        Some(Claimed(claim)) => {
            let starting = start_claimed(app.engine.clone(), launch, Arc::clone(claim));
            let started = tokio::spawn(starting).await;
            started.unwrap_or_else(|_| Err(refusal::broken("starting the command")))?
        }
        None => app.engine.start(launch).await.map_err(|error| refusal::from_start(&error))?,
    };
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

/// A key that has a process is answered with it, whatever became of the claim.
async fn start_claimed(
    engine: Engine,
    launch: Launch,
    claim: Arc<dyn Claim>,
) -> Result<Started, Error> {
    let _turn = claim.turn().lock().await;
    let known = launch.key.as_ref().and_then(|key| engine.keyed(key));
    if known.is_none() {
        claim.check()?;
    }
    let started = engine.start(launch).await;
    started.map_err(|error| {
        if !matches!(error, StartError::KeyConflict { .. }) {
            claim.refused();
        }
        refusal::from_start(&error)
    })
}
