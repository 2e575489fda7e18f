//! `GET …/{id}/output`: head and tail of the output, at once or when the process has ended.

use std::borrow::Cow;
use std::slice;

use lastbyte_engine::{Ending, LogSource, Process, Program, Snapshot, Status};
use lastbyte_output::views::head_tail;
use serde::Serialize;
use tokio::time::timeout;

use super::answer::{Answer, Refusal, ok};
use super::chat::Chat;
use super::json_in::replace_invalid;
use super::path::WaitFor;
use crate::App;
use crate::verbs::refusal::unreadable;

#[derive(Serialize)]
struct Output<'a> {
    output: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<Truncation>,
    running: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    command: String,
}

#[derive(Serialize)]
struct Truncation {
    original_bytes: u64,
    retained_bytes: u64,
    omitted_bytes: u64,
    strategy: &'static str,
}

pub(super) async fn output(app: &App, chat: &Chat, id: &[u8], wait: WaitFor) -> Answer {
    let process = chat.find(app, id).ok_or_else(|| Refusal::not_found(id))?;
    match wait {
        WaitFor::Nothing => {}
        WaitFor::Ending => {
            let _permit = app.begin_wait()?;
            // If it has not ended by then, the answer says that it is running.
            _ = timeout(app.limits.coder_wait, process.ended()).await;
        }
    }
    render(&process, process.snapshot())
}

/// Of one snapshot: state and output cannot be of different instants. Read on the runtime: it is
/// at most 32 KiB from the page cache.
fn render(process: &Process, snapshot: Snapshot) -> Answer {
    let ending = snapshot.ending().cloned();
    let source = LogSource::output(process.reader(), snapshot);
    let shown = head_tail::coder(&source).map_err(|error| unreadable(process, &error))?;
    ok(&Output {
        output: replace_invalid(&shown.text),
        truncated: shown.truncated.map(|cut| Truncation {
            original_bytes: cut.original_bytes,
            retained_bytes: cut.retained_bytes,
            omitted_bytes: cut.omitted_bytes,
            strategy: "head_tail",
        }),
        running: ending.is_none(),
        exit_code: ending.map(|ending| exit_code(&ending)),
        command: command(&process.spec().program),
    })
}

/// As the agent has it: everything that is no exit code is -1.
pub(super) fn exit_code(ending: &Ending) -> i32 {
    match ending.status {
        Status::Exited(code) => code,
        Status::Signalled { .. } | Status::Lost(_) => -1,
    }
}

/// The text given to the shell. What was started by another door may have been words.
pub(super) fn command(program: &Program) -> String {
    let words = match program {
        Program::Shell(text) => slice::from_ref(text),
        Program::Argv(words) => words,
    };
    let words = words.iter().map(|word| replace_invalid(word.as_encoded_bytes()));
    words.collect::<Vec<_>>().join(" ")
}
