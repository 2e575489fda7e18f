//! The exit codes of the program: the one place that says what each is for.

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

/// The table as `--help` shows it.
pub(crate) const HELP: &str = "\
Exit codes:
  N      the command's own exit code
  124    the command was stopped because its time was over
  125    lastbyte itself failed: no such directory, no place for its files, output not written
  126    the program was found but cannot be run
  127    the program was not found
  128+N  the command was ended by signal N: 130 for SIGINT, 137 for SIGKILL, 143 for SIGTERM
  2      the call of lastbyte makes no sense";

/// The same for the commands that talk to a server.
pub(crate) const CLIENT_HELP: &str = "\
Exit codes:
  0      it is done
  1      stop: something is left
  125    no server is running, or it cannot do this
  126    start: the program was found but cannot be run
  127    start: the program was not found
  2      the call of lastbyte makes no sense";

pub(crate) const SEARCH_HELP: &str = "\
Exit codes:
  0      something matches
  1      nothing matches
  125    no server is running, or it cannot do this
  2      the call of lastbyte makes no sense, or the pattern is none";

pub(crate) const WAIT_HELP: &str = "\
Exit codes:
  N      the command's own exit code, when only its end was waited for
  0      something else was waited for and has come
  1      something else was waited for, and the process ended first
  124    the time of the wait is over and the process runs on, or the process was stopped because
         its own time was over
  125    no server is running, or it cannot do this
  128+N  the command was ended by signal N
  2      the call of lastbyte makes no sense";

pub(crate) const ATTACH_HELP: &str = "\
Exit codes:
  N      the command's own exit code, when it has ended
  0      detached; the command runs on
  124    the command was stopped because its time was over
  125    no server is running, it cannot do this, or it has gone
  128+N  the command was ended by signal N, or lastbyte was and the command runs on
  2      the call of lastbyte makes no sense";

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
