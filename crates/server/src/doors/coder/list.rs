//! `GET …/list`: at most ten, what runs first, then the newest.

use std::cmp::Reverse;
use std::time::{SystemTime, UNIX_EPOCH};

use lastbyte_engine::{Process, Snapshot};
use serde::Serialize;

use super::answer::{Answer, ok};
use super::chat::Chat;
use super::json_in::replace_invalid;
use super::launch::is_background;
use super::output::{command, exit_code};
use crate::App;

const MOST: usize = 10;

#[derive(Serialize)]
struct ProcessList {
    processes: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    id: String,
    command: String,
    workdir: String,
    background: bool,
    running: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    started_at_unix: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    exited_at_unix: Option<u64>,
}

/// Those of the chat; all, if the request names none.
pub(super) fn list(app: &App, chat: &Chat) -> Answer {
    let mut known = app.engine.unended_first(chat.session().as_ref(), MOST);
    // One that ended meanwhile comes behind those that run, and order is kept within a second.
    known.sort_by_key(|(process, now)| {
        (now.ending().is_some(), Reverse(unix_seconds(process.spec().started)))
    });
    ok(&ProcessList { processes: known.iter().map(|(process, now)| row(process, now)).collect() })
}

fn row(process: &Process, now: &Snapshot) -> Row {
    let (spec, ending) = (process.spec(), now.ending());
    Row {
        id: spec.id.to_string(),
        command: command(&spec.program),
        workdir: replace_invalid(spec.cwd.as_os_str().as_encoded_bytes()).into_owned(),
        background: is_background(spec),
        running: ending.is_none(),
        exit_code: ending.map(|ending| exit_code(ending)),
        started_at_unix: unix_seconds(spec.started),
        exited_at_unix: ending.map(|ending| unix_seconds(ending.times.known_at())),
    }
}

pub(super) fn unix_seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
