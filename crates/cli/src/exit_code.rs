//! The exit codes of the program: the one place that says what each is for.

use lastbyte_engine::{
    Cause, Ending, LaunchError, LostWhy, Signal, SpawnError, StartError, Status,
};
use lastbyte_sys::Errno;

use crate::attend::CutShort;
use crate::usage;

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

pub(crate) fn of_error(error: &anyhow::Error) -> u8 {
    if error.is::<usage::Error>() {
        USAGE
    } else if let Some(CutShort { signal }) = error.downcast_ref() {
        of_signal(*signal)
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
        | StartError::KeyConflict { .. }
        | StartError::Closed => OWN_FAILURE,
    }
}

/// As a shell tells it of a program that the signal ended.
pub(crate) fn of_signal(signal: Signal) -> u8 {
    // There are 64 signals.
    SIGNALLED + signal.number() as u8
}
