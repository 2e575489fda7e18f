//! The exit codes of the program: the one place that says what each is for.

pub(crate) mod help;

use lastbyte_engine::{
    Cause, Ending, LaunchError, LostWhy, Signal, SpawnError, StartError, Status,
};
use lastbyte_sys::Errno;

use anyhow::bail;
use lastbyte_client::{ClientError, wire};

use crate::attend::CutShort;
use crate::config::ConfigError;
use crate::signals::Interrupted;
use crate::{client_error, usage};

/// Something was waited for that did not come, looked for that is not there, or stopped that is.
pub(crate) const NOT_MET: u8 = 1;
pub(crate) const USAGE: u8 = 2;
pub(crate) const TIMED_OUT: u8 = 124;
pub(crate) const OWN_FAILURE: u8 = 125;
pub(crate) const NOT_RUNNABLE: u8 = 126;
pub(crate) const NOT_FOUND: u8 = 127;
const SIGNALLED: u8 = 128;

/// What the ending of a command means for us, or why that is not known.
pub(crate) fn of_ending(ending: &Ending) -> Result<u8, LostWhy> {
    if let Cause::TimedOut { .. } = ending.cause {
        return Ok(TIMED_OUT);
    }
    match ending.status {
        // The kernel keeps eight bits.
        Status::Exited(code) => Ok(code as u8),
        Status::Signalled { signal, .. } => Ok(of_signal(signal)),
        Status::Lost(why) => Err(why),
    }
}

/// The same of an ending that a server tells of.
pub(crate) fn of_wire_ending(ending: &wire::Ending) -> anyhow::Result<u8> {
    if let wire::Cause::TimedOut { .. } = ending.cause {
        return Ok(TIMED_OUT);
    }
    match &ending.status {
        wire::Status::Exited { code } => Ok(*code as u8), // as above
        wire::Status::Signalled { signal, .. } => Ok(SIGNALLED + *signal as u8), // as below
        wire::Status::Lost { why } => bail!("cannot tell how the command ended: {why}"),
    }
}

pub(crate) fn of_error(error: &anyhow::Error) -> u8 {
    if error.is::<usage::Error>() || error.is::<ConfigError>() {
        USAGE
    } else if let Some(CutShort { signal }) = error.downcast_ref() {
        of_signal(*signal)
    } else if let Some(Interrupted { signal, .. }) = error.downcast_ref() {
        of_signal(*signal)
    } else if let Some(ClientError::Refused(refusal)) = client_error::of(error) {
        refusal.code.exit_code()
    } else {
        error.downcast_ref().map_or(OWN_FAILURE, of_start_error)
    }
}

fn of_start_error(error: &StartError) -> u8 {
    match error {
        StartError::Launch(LaunchError::EmptyCommand | LaunchError::EnvName { .. }) => USAGE,
        StartError::Spawn(SpawnError::Program { errno: Errno::NOENT, .. }) => NOT_FOUND,
        StartError::Spawn(SpawnError::Program { .. } | SpawnError::Interpreter { .. }) => {
            NOT_RUNNABLE
        }
        StartError::Launch(
            LaunchError::Nul { .. } | LaunchError::Cwd { .. } | LaunchError::Input { .. },
        )
        | StartError::Spawn(SpawnError::Cwd { .. } | SpawnError::Step { .. })
        | StartError::Sandbox(_)
        | StartError::KeyConflict { .. }
        | StartError::Closed => OWN_FAILURE,
    }
}

/// As a shell tells it of a program that the signal ended.
pub(crate) fn of_signal(signal: Signal) -> u8 {
    // There are 64 signals.
    SIGNALLED + signal.number() as u8
}
