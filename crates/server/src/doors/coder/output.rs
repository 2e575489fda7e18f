//! `GET …/{id}/output`: head and tail of the output, at once or when the process has ended.

use lastbyte_engine::{Ending, LogSource, Process, Program, Snapshot, Status};
use lastbyte_output::views::head_tail::{self, Truncated};
use tokio::time::timeout;

use super::answer::{Answer, Refusal};
use super::chat::Chat;
use super::json_out::Object;
use super::query::WaitFor;
use crate::App;
use crate::verbs::refusal::unreadable;

pub(super) async fn output(app: &App, chat: &Chat, id: &[u8], wait: WaitFor) -> Answer {
    let process = chat.find(app, id).ok_or_else(|| Refusal::not_found(id))?;
    match wait {
        WaitFor::Nothing => {}
        WaitFor::Ending => {
            let _permit = app.begin_wait().map_err(|error| Refusal::from_error(&error))?;
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
    let shown =
        head_tail::coder(&source).map_err(|error| Refusal::from_error(&unreadable(&error)))?;
    let mut answer = Object::new().text("output", shown.text);
    if let Some(cut) = shown.truncated {
        answer = answer.object("truncated", truncated(cut));
    }
    answer = answer.bool("running", ending.is_none());
    if let Some(ending) = ending {
        answer = answer.number("exit_code", exit_code(&ending));
    }
    Ok(answer.text("command", command(&process.spec().program)))
}

fn truncated(cut: Truncated) -> Object {
    let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    Object::new()
        .number("original_bytes", count(cut.original_bytes))
        .number("retained_bytes", count(cut.retained_bytes))
        .number("omitted_bytes", count(cut.omitted_bytes))
        .text("strategy", "head_tail")
}

/// As the agent has it: everything that is no exit code is -1.
pub(super) fn exit_code(ending: &Ending) -> i64 {
    match ending.status {
        Status::Exited(code) => code.into(),
        Status::Signalled { .. } | Status::Lost(_) => -1,
    }
}

/// The text given to the shell. What was started by another door may have been words.
pub(super) fn command(program: &Program) -> Vec<u8> {
    match program {
        Program::Shell(text) => text.as_encoded_bytes().to_vec(),
        Program::Argv(words) => {
            let words: Vec<_> = words.iter().map(|word| word.as_encoded_bytes()).collect();
            words.join(&b' ')
        }
    }
}
