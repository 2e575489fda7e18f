//! The methods about a running command: what they say, and what they do. `command/exec/*` and
//! `process/*` have them under different names.

use lastbyte_engine::{Phase, Process, StopPolicy, Streams, Verb, WindowSize, WriteError};
use serde::Deserialize;

use super::methods::{Action, Api, Target};
use crate::doors::rpc::{Fault, base64};

/// `command/exec/write`: bytes for standard input, its end, or both.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CommandExecWriteParams {
    pub(super) process_id: String,
    pub(super) delta_base64: Option<String>,
    #[serde(default)]
    pub(super) close_stdin: bool,
}

/// `process/writeStdin`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ProcessWriteStdinParams {
    pub(super) process_handle: String,
    pub(super) delta_base64: Option<String>,
    #[serde(default)]
    pub(super) close_stdin: bool,
}

/// `command/exec/resize`: another size for the terminal.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CommandExecResizeParams {
    pub(super) process_id: String,
    pub(super) size: Size,
}

/// `process/resizePty`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ProcessResizePtyParams {
    pub(super) process_handle: String,
    pub(super) size: Size,
}

/// `command/exec/terminate`: kills the command and everything it has started.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CommandExecTerminateParams {
    pub(super) process_id: String,
}

/// `process/kill`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ProcessKillParams {
    pub(super) process_handle: String,
}

/// The size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) struct Size {
    rows: u16,
    cols: u16,
}

pub(super) fn write(
    target: Target,
    delta_base64: Option<String>,
    close: bool,
) -> Result<(Target, Action), Fault> {
    if delta_base64.is_none() && !close {
        return Err(target.api.nothing_to_write());
    }
    let bytes = base64::decode(&delta_base64.unwrap_or_default())
        .map_err(|why| Fault::invalid_params(format!("invalid deltaBase64: {why}")))?;
    Ok((target, Action::Write { bytes, close }))
}

pub(super) fn resize(target: Target, size: Size) -> Result<(Target, Action), Fault> {
    let size = size.check(target.api)?;
    Ok((target, Action::Resize(size)))
}

impl Size {
    pub(super) fn check(self, api: Api) -> Result<WindowSize, Fault> {
        let Self { rows, cols } = self;
        if rows == 0 || cols == 0 {
            return Err(api.zero_size());
        }
        Ok(WindowSize { rows, cols })
    }
}

/// A command that was started, as requests about it see it.
#[derive(Debug)]
pub(super) struct Controlled<'a> {
    process: &'a Process,
    target: &'a Target,
    stdin_closed: bool,
    terminated: bool,
}

impl<'a> Controlled<'a> {
    pub(super) fn new(process: &'a Process, target: &'a Target) -> Self {
        Self { process, target, stdin_closed: false, terminated: false }
    }

    /// Carries out a request. Waits for the command's owner, never for the command.
    pub(super) async fn handle(&mut self, action: Action) -> Result<(), Fault> {
        match (action, self.process.snapshot().phase) {
            (Action::Start(_), _) => return Err(self.target.duplicate()),
            // From the leader's exit on there is nothing left to control.
            (_, Phase::Draining | Phase::Ended(_)) => return Err(self.target.no_longer_running()),
            (Action::Write { bytes, close }, Phase::Running) => self.write(bytes, close).await?,
            (Action::Resize(size), Phase::Running) => {
                let resized = self.process.resize(size).await;
                resized.map_err(|error| self.target.not_resized(error))?;
            }
            (Action::Terminate, Phase::Running) if self.terminated => {}
            (Action::Terminate, Phase::Running) => {
                self.terminated = true;
                let process = self.process.clone();
                // The command's last message tells the outcome, after the answer.
                tokio::spawn(async move { process.stop_by(StopPolicy::KILL, Verb::Stop).await });
            }
        }
        Ok(())
    }

    async fn write(&mut self, mut bytes: Vec<u8>, close: bool) -> Result<(), Fault> {
        // Closing it again is not an error.
        if self.stdin_closed && bytes.is_empty() {
            return Ok(());
        }
        if self.stdin_closed {
            return Err(self.target.not_written(WriteError::Closed));
        }
        if close && matches!(self.process.spec().streams, Streams::Pty(_)) {
            // A terminal takes the end-of-file character as such only at the start of a line.
            bytes.push(b'\n');
        }
        let written = if close {
            self.process.write_and_close(bytes, None).await
        } else {
            self.process.write(bytes, None).await
        };
        match written {
            Ok(_) => self.stdin_closed = close,
            // The answer means "queued": whether the command reads it is up to the command.
            Err(WriteError::Broken) => {}
            Err(error) => return Err(self.target.not_written(error)),
        }
        Ok(())
    }
}
