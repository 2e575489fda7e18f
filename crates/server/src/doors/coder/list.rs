//! `GET …/list`: at most ten, what runs first, then the newest.

use std::cmp::Reverse;
use std::time::{SystemTime, UNIX_EPOCH};

use lastbyte_engine::{Process, Snapshot};

use super::chat::Chat;
use super::json_out::Object;
use super::launch::is_background;
use super::output::{command, exit_code};
use crate::App;

const MOST: usize = 10;

/// Those of the chat; all, if the request names none.
pub(super) fn list(app: &App, chat: &Chat) -> Object {
    let mut known = app.engine.unended_first(chat.session().as_ref(), MOST);
    // One that ended meanwhile comes behind those that run, and order is kept within a second.
    known.sort_by_key(|(process, now)| {
        (now.ending().is_some(), Reverse(unix_seconds(process.spec().started)))
    });
    let rows = known.iter().map(|(process, now)| row(process, now));
    Object::new().objects("processes", rows)
}

fn row(process: &Process, now: &Snapshot) -> Object {
    let (spec, ending) = (process.spec(), now.ending());
    let mut row = Object::new()
        .text("id", spec.id.to_string())
        .text("command", command(&spec.program))
        .text("workdir", spec.cwd.as_os_str().as_encoded_bytes())
        .bool("background", is_background(spec))
        .bool("running", ending.is_none());
    if let Some(ending) = ending {
        row = row.number("exit_code", exit_code(ending));
    }
    row = row.number("started_at_unix", unix_seconds(spec.started));
    match ending {
        Some(ending) => row.number("exited_at_unix", unix_seconds(ending.times.ended)),
        None => row,
    }
}

pub(super) fn unix_seconds(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
