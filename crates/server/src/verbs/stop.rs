//! Stopping a process with its whole tree; the answer is the proof.

use lastbyte_engine::{Process, Verb};
use lastbyte_wire::{Error, StopProof, StopRequest};

use crate::{from_wire, to_wire};

/// Goes on when the caller goes away.
pub async fn stop(process: &Process, request: &StopRequest) -> Result<StopProof, Error> {
    let policy = from_wire::stop_policy(request.stop.as_ref(), process.about().stop)?;
    Ok(to_wire::stop_proof(process.stop_by(policy, Verb::Stop).await))
}
