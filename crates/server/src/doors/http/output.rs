//! `GET …/output`: a view as JSON, or raw bytes with what they are bytes of in the head.

use std::fmt::Display;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, Response, Uri, header};
use lastbyte_engine::{Sandbox, Snapshot};
use lastbyte_wire::head;

use super::answer::{Answer, ok};
use super::input::{self, Target};
use crate::verbs::read::{self, RawOutput};
use crate::{App, to_wire};

pub(super) async fn read_output(
    State(app): State<App>,
    Target(process): Target,
    uri: Uri,
) -> Answer {
    let query = input::query(&uri)?;
    match read::read(&app, &process, &query).await? {
        read::Answer::View(view) => ok(&view),
        read::Answer::Raw(raw) => Ok(bytes(*raw, &process.about().sandbox)),
    }
}

fn bytes(raw: RawOutput, sandbox: &Sandbox) -> Response<Body> {
    let RawOutput { snapshot, from, next, body } = raw;
    let len = body.len();
    let mut answer = Response::new(Body::from_stream(body));
    let mut say = |name: &'static str, value: &dyn Display| {
        // Numbers, words and JSON in ASCII: nothing that a head cannot have.
        if let Ok(value) = HeaderValue::try_from(value.to_string()) {
            answer.headers_mut().insert(name, value);
        }
    };
    say(header::CONTENT_TYPE.as_str(), &"application/octet-stream");
    say(header::CONTENT_LENGTH.as_str(), &len);
    say(head::FROM, &from);
    say(head::NEXT, &next);
    of_snapshot(&snapshot, sandbox, &mut say);
    answer
}

fn of_snapshot(
    snapshot: &Snapshot,
    sandbox: &Sandbox,
    say: &mut impl FnMut(&'static str, &dyn Display),
) {
    say(head::TOTAL, &snapshot.extent.len);
    say(head::LOG_OPEN, &snapshot.log_open);
    say(head::PHASE, &phase(snapshot));
    let gone = snapshot.extent.dropped.ranges().iter();
    let gone: Vec<_> = gone.map(|range| format!("{}-{}", range.start, range.end)).collect();
    if !gone.is_empty() {
        say(head::DROPPED, &gone.join(","));
    }
    if let Some(ending) = snapshot.ending() {
        say(head::FINAL_LEN, &ending.final_len);
        say(head::ENDING, &ascii_json(&to_wire::ending(ending, sandbox)));
    }
}

fn phase(snapshot: &Snapshot) -> &'static str {
    match to_wire::phase(&snapshot.phase) {
        lastbyte_wire::Phase::Running => "running",
        lastbyte_wire::Phase::Draining => "draining",
        lastbyte_wire::Phase::Ended => "ended",
    }
}

/// JSON that a head can carry: a holder's name may have any character.
fn ascii_json(value: &impl serde::Serialize) -> String {
    let text = serde_json::to_string(value).expect("words of the API are JSON");
    let mut ascii = String::with_capacity(text.len());
    for character in text.chars() {
        match character.is_ascii() {
            true => ascii.push(character),
            false => {
                let mut units = [0; 2];
                for unit in character.encode_utf16(&mut units) {
                    ascii.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    ascii
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_in_a_head_is_ascii_and_reads_back_as_it_was() {
        let name = "naïve 🦀\n\"";
        let text = ascii_json(&name);
        assert!(text.is_ascii() && !text.contains('\n'));
        assert_eq!(serde_json::from_str::<String>(&text).unwrap(), name);
    }
}
