//! A command that was started, as the requests about it find it.

use lastbyte_engine::{
    Phase, Process, ResizeError, StopPolicy, Streams, Verb, WindowSize, WriteError,
};
use serde_json::json;

use super::door::Streaming;
use super::envelope::{RequestId, failure, success};
use super::fault::Fault;
use super::methods::{Control, Target};
use super::outbox::Outbox;

/// Answers the requests about one command, one after the other.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) process: Process,
    pub(super) target: Target,
    pub(super) control: Streaming,
    pub(super) streams: Streams,
    pub(super) input: Input,
    pub(super) outbox: Outbox,
    pub(super) terminated: bool,
}

/// What the client has made of standard input so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Input {
    NotEnabled,
    Open,
    Closed,
}

impl Running {
    /// Does what is asked and answers. Waits for the command's owner, never for the command.
    pub(super) async fn obey(&mut self, id: &RequestId, control: Control) {
        let done = match self.check() {
            Err(fault) => Err(fault),
            Ok(()) => match control {
                Control::Write { bytes, close } => self.write(bytes, close).await,
                Control::Resize(size) => self.resize(size).await,
                Control::Terminate => return self.terminate(id),
            },
        };
        match done {
            Ok(()) => self.outbox.answer(success(id, &json!({}))),
            Err(fault) => self.outbox.answer(failure(id, &fault)),
        }
    }

    /// From the leader's exit on there is nothing left to control.
    fn check(&self) -> Result<(), Fault> {
        match (self.control, self.process.snapshot().phase) {
            (Streaming::Unsupported, _) => Err(Fault::invalid_request(
                "command/exec/write, command/exec/terminate, and command/exec/resize are not \
                 supported for windows sandbox processes",
            )),
            (Streaming::Supported, Phase::Running) => Ok(()),
            (Streaming::Supported, Phase::Draining | Phase::Ended(_)) => Err(self.exited()),
        }
    }

    fn exited(&self) -> Fault {
        self.target.family().no_longer_running(self.target.id())
    }

    async fn write(&mut self, mut bytes: Vec<u8>, close: bool) -> Result<(), Fault> {
        match self.input {
            Input::NotEnabled => return Err(self.target.family().stdin_not_enabled()),
            Input::Closed if bytes.is_empty() => return Ok(()),
            Input::Closed => return Err(Fault::invalid_request("stdin is already closed")),
            Input::Open => {}
        }
        if close && matches!(self.streams, Streams::Pty(_)) {
            // So that the end of input is read as such, whatever line was begun.
            bytes.push(b'\n');
        }
        let written = match close {
            true => self.process.write_and_close(bytes, None).await,
            false => self.process.write(bytes, None).await,
        };
        match written {
            Ok(_) => {
                self.input = if close { Input::Closed } else { Input::Open };
                Ok(())
            }
            // The answer means "queued": what the command does not read is its own affair.
            Err(WriteError::Broken) => Ok(()),
            Err(WriteError::Exited) => Err(self.exited()),
            Err(WriteError::NotOpen) => Err(self.target.family().stdin_not_enabled()),
            Err(WriteError::Closed) => Err(Fault::invalid_request("stdin is already closed")),
            Err(full @ (WriteError::QueueFull { .. } | WriteError::Gap { .. })) => {
                Err(Fault::overloaded(full.to_string()))
            }
        }
    }

    async fn resize(&self, size: WindowSize) -> Result<(), Fault> {
        let failed = |why: &str| Fault::invalid_request(format!("failed to resize PTY: {why}"));
        match self.process.resize(size).await {
            Ok(()) => Ok(()),
            Err(ResizeError::NoTerminal) => Err(failed("process is not attached to a PTY")),
            Err(ResizeError::Exited) => Err(self.exited()),
            Err(ResizeError::Zero) => Err(self.target.family().zero_size()),
            Err(ResizeError::Refused(errno)) => Err(failed(&errno.to_string())),
        }
    }

    /// Answered before the end that it brings.
    fn terminate(&mut self, id: &RequestId) {
        self.outbox.answer(success(id, &json!({})));
        if !self.terminated {
            self.terminated = true;
            let process = self.process.clone();
            // The command's end tells what came of it.
            tokio::spawn(async move { process.stop_by(StopPolicy::KILL, Verb::Stop).await });
        }
    }
}
