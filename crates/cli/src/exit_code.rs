//! The exit codes of the program: the one place that says what each is for.

pub(crate) mod help;

use anyhow::bail;
use lastbyte_client::{ClientError, wire};
use lastbyte_engine::Signal;

use crate::config::ConfigError;
use crate::signals::Interrupted;
use crate::{client_error, format, usage};

/// Something was waited for that did not come, looked for that is not there, or stopped that is.
pub(crate) const NOT_MET: u8 = 1;
pub(crate) const USAGE: u8 = 2;
/// Nothing was selected.
pub(crate) const NONE_SELECTED: u8 = 3;
/// Not all output could be searched.
pub(crate) const INCOMPLETE: u8 = 4;
/// It is not known whether a command was started.
pub(crate) const UNKNOWN: u8 = 123;
pub(crate) const TIMED_OUT: u8 = 124;
pub(crate) const OWN_FAILURE: u8 = 125;
pub(crate) const NOT_RUNNABLE: u8 = 126;
pub(crate) const NOT_FOUND: u8 = 127;
const SIGNALLED: u8 = 128;

/// The exit code that stands for the ending of a command.
pub(crate) fn from_ending(ending: &wire::Ending) -> anyhow::Result<u8> {
    if let Some(wire::Cause::TimedOut { .. }) = ending.cause {
        return Ok(TIMED_OUT);
    }
    match &ending.status {
        // The kernel keeps eight bits.
        wire::Status::Exited { code } => Ok(*code as u8),
        wire::Status::Signalled { signal, .. } => Ok(from_signal_number(*signal)),
        wire::Status::Lost { .. } => bail!("{}", format::ending(ending)),
    }
}

pub(crate) fn from_error(error: &anyhow::Error) -> u8 {
    if error.is::<usage::Error>() || error.is::<ConfigError>() {
        USAGE
    } else if let Some(Interrupted { signal, .. }) = error.downcast_ref() {
        from_signal(*signal)
    } else if let Some(ClientError::StartUnknown { .. }) = error.downcast_ref() {
        UNKNOWN
    } else {
        client_error::refusal(error).map_or(OWN_FAILURE, |refusal| refusal.code.exit_code())
    }
}

/// As a shell reports a program that the signal ended.
pub(crate) fn from_signal(signal: Signal) -> u8 {
    from_signal_number(signal.number())
}

fn from_signal_number(number: i32) -> u8 {
    // There are 64 signals.
    SIGNALLED + number as u8
}

#[cfg(test)]
mod tests {
    use lastbyte_engine::{Engine, EnvEdit, Launch, Settings};
    use lastbyte_server::to_wire;

    use super::*;

    /// What the API calls an invalid request is one to `run`, too, which asks no server.
    #[tokio::test]
    async fn a_launch_that_makes_no_sense_has_the_exit_code_of_invalid_arguments() {
        let state = tempfile::tempdir().unwrap();
        let engine = Engine::new(Settings::new(state.path())).unwrap();
        let env = vec![EnvEdit::Set("A=B".into(), "c".into())];
        for launch in [
            Launch::shell("a\0b"),
            Launch::argv(["true", "a\0b"]),
            Launch::argv([""; 0]),
            Launch { env, ..Launch::shell("true") },
        ] {
            let Err(error) = engine.start(launch).await else { panic!("it was started") };
            assert_eq!(from_error(&to_wire::start_error(&error).into()), USAGE, "{error}");
        }
    }
}
