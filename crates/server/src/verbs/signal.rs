//! Sending a signal to a process's group, or to what is left of it.

use lastbyte_engine::Process;
use lastbyte_wire::{Error, ErrorCode, SignalAnswer, SignalRequest};

use crate::{from_wire, to_wire};

pub async fn signal(process: &Process, request: &SignalRequest) -> Result<SignalAnswer, Error> {
    let signal = from_wire::signal(&request.signal)?;
    match process.signal(signal).await {
        Ok(delivery) => Ok(SignalAnswer { delivered: to_wire::delivered(delivery) }),
        Err(error) => Err(Error::new(ErrorCode::Failed, error.to_string())),
    }
}
