//! How a command ended: the members of Codex, and some more that its clients may ignore.

use std::borrow::Cow;
use std::time::Duration;

use lastbyte_engine::{Cause, Closing, Ending, Status};
use serde::Serialize;

use super::jsonrpc::notification;
use super::methods::Target;
use super::output::Collected;
use crate::doors::rpc::{RequestId, success};

pub(super) const EXITED: &str = "process/exited";

/// The result of `command/exec`, and the parameters of `process/exited`, which have most members in
/// common. `None` is left out.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct CommandResult<'a> {
    /// Only of `process/exited`.
    #[serde(skip_serializing_if = "Option::is_none")]
    process_handle: Option<&'a str>,
    exit_code: i32,
    stdout: Cow<'a, str>,
    /// Only of `process/exited`.
    #[serde(skip_serializing_if = "Option::is_none")]
    stdout_cap_reached: Option<bool>,
    stderr: Cow<'a, str>,
    /// Only of `process/exited`.
    #[serde(skip_serializing_if = "Option::is_none")]
    stderr_cap_reached: Option<bool>,
    /// Only of `process/exited`.
    #[serde(skip_serializing_if = "Option::is_none")]
    output_drain_timed_out: Option<bool>,
    timed_out: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<String>,
    duration_ms: u64,
    stdout_bytes: u64,
    stderr_bytes: u64,
    stdout_truncated: bool,
    stderr_truncated: bool,
    /// Only of `command/exec`.
    #[serde(skip_serializing_if = "Option::is_none")]
    held_open: Option<bool>,
}

/// The answer to `command/exec`.
pub(super) fn exec_answer(id: &RequestId, collected: &Collected) -> String {
    let held_open = Some(held_open(&collected.ending));
    success(id, &CommandResult { held_open, ..CommandResult::new(collected) })
}

/// The notification `process/exited`.
pub(super) fn exited(target: &Target, collected: &Collected) -> String {
    let [out, err] = &collected.captures;
    let exited = CommandResult {
        process_handle: target.id.as_deref(),
        stdout_cap_reached: Some(out.cap_reached()),
        stderr_cap_reached: Some(err.cap_reached()),
        output_drain_timed_out: Some(held_open(&collected.ending)),
        ..CommandResult::new(collected)
    };
    notification(EXITED, &exited)
}

impl<'a> CommandResult<'a> {
    /// What both have.
    fn new(collected: &'a Collected) -> Self {
        let Collected { ending, captures: [out, err], lost } = collected;
        let timed_out = matches!(ending.cause, Cause::TimedOut { .. });
        let (exit_code, signal) = match ending.status {
            Status::Exited(code) => (code, None),
            Status::Signalled { signal, .. } => (128 + signal.number(), Some(signal.to_string())),
            // Unknown.
            Status::Lost(_) => (-1, None),
        };
        Self {
            exit_code: if timed_out { 124 } else { exit_code },
            stdout: out.text(),
            stderr: err.text(),
            timed_out,
            signal,
            duration_ms: u64::try_from(duration(ending).as_millis()).unwrap_or(u64::MAX),
            stdout_bytes: out.total,
            stderr_bytes: err.total,
            // It is not known which stream the lost bytes belonged to.
            stdout_truncated: out.truncated() || *lost > 0,
            stderr_truncated: err.truncated() || *lost > 0,
            ..Self::default()
        }
    }
}

/// From the start to the leader's exit. The protocol has no word for one that nobody saw.
fn duration(ending: &Ending) -> Duration {
    ending.times.ran().unwrap_or_else(|| ending.times.known_after())
}

/// Another process still has the output open, or may have; what it writes is not in the answer.
fn held_open(ending: &Ending) -> bool {
    match ending.closing {
        Closing::Eof => false,
        Closing::Held(_) | Closing::Unknown => true,
    }
}
