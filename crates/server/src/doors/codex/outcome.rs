//! How it went, in the members of Codex and some more that its clients may ignore.

use lastbyte_engine::{Cause, Closing, Ending, Status};
use serde::Serialize;

use super::envelope::{RequestId, notification, success};
use super::following::Followed;

pub(super) const EXITED: &str = "process/exited";

/// The result of `command/exec`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "the flags of the protocol")]
struct ExecResult<'a> {
    exit_code: i32,
    stdout: &'a str,
    stderr: &'a str,
    timed_out: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<String>,
    duration_ms: u64,
    stdout_bytes: u64,
    stderr_bytes: u64,
    stdout_truncated: bool,
    stderr_truncated: bool,
    held_open: bool,
}

/// What `process/exited` says.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "the flags of the protocol")]
struct Exited<'a> {
    process_handle: &'a str,
    exit_code: i32,
    stdout: &'a str,
    stdout_cap_reached: bool,
    stderr: &'a str,
    stderr_cap_reached: bool,
    output_drain_timed_out: bool,
    timed_out: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<String>,
    duration_ms: u64,
    stdout_bytes: u64,
    stderr_bytes: u64,
    stdout_truncated: bool,
    stderr_truncated: bool,
}

/// The answer to `command/exec`.
pub(super) fn exec_answer(id: &RequestId, followed: &Followed) -> String {
    let Followed { ending, out, err, texts: [stdout, stderr], lost } = followed;
    let result = ExecResult {
        exit_code: exit_code(ending),
        stdout,
        stderr,
        timed_out: timed_out(ending),
        signal: signal(ending),
        duration_ms: duration_ms(ending),
        stdout_bytes: out.total(),
        stderr_bytes: err.total(),
        // Nobody knows which stream the lost bytes were of.
        stdout_truncated: out.truncated() || *lost > 0,
        stderr_truncated: err.truncated() || *lost > 0,
        held_open: held_open(ending),
    };
    success(id, &result)
}

/// The notification `process/exited`.
pub(super) fn exited(process_handle: &str, followed: &Followed) -> String {
    let Followed { ending, out, err, texts: [stdout, stderr], lost } = followed;
    let exited = Exited {
        process_handle,
        exit_code: exit_code(ending),
        stdout,
        stdout_cap_reached: out.cap_reached(),
        stderr,
        stderr_cap_reached: err.cap_reached(),
        output_drain_timed_out: held_open(ending),
        timed_out: timed_out(ending),
        signal: signal(ending),
        duration_ms: duration_ms(ending),
        stdout_bytes: out.total(),
        stderr_bytes: err.total(),
        stdout_truncated: out.truncated() || *lost > 0,
        stderr_truncated: err.truncated() || *lost > 0,
    };
    notification(EXITED, &exited)
}

/// 124 after a timeout, 128 + n after a signal, -1 when nobody knows.
fn exit_code(ending: &Ending) -> i32 {
    match ending.status {
        _ if timed_out(ending) => 124,
        Status::Exited(code) => code,
        Status::Signalled { signal, .. } => 128 + signal.number(),
        Status::Lost(_) => -1,
    }
}

fn timed_out(ending: &Ending) -> bool {
    matches!(ending.cause, Cause::TimedOut { .. })
}

fn signal(ending: &Ending) -> Option<String> {
    match ending.status {
        Status::Signalled { signal, .. } => Some(signal.to_string()),
        Status::Exited(_) | Status::Lost(_) => None,
    }
}

/// From the start to the leader's exit.
fn duration_ms(ending: &Ending) -> u64 {
    u64::try_from(ending.times.ran.as_millis()).unwrap_or(u64::MAX)
}

/// Somebody has the output open still; what they write is not in the answer.
fn held_open(ending: &Ending) -> bool {
    match ending.closing {
        Closing::Eof => false,
        Closing::Held(_) => true,
    }
}
