//! `GET …/output`: a view as JSON, or raw bytes with what they are bytes of in the head.

use std::convert::Infallible;
use std::fmt::Display;

use axum::body::Body;
use axum::http::header::{self, IntoHeaderName};
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, Uri};
use axum::response::IntoResponse;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use lastbyte_engine::{Process, Snapshot};
use lastbyte_wire::{Error, ErrorCode, OutputQuery, View, head};

use super::answer::{Answer, Refusal, after_a_wait, json_text, ok};
use super::input::{self, Caller, Target};
use super::partial::{self, Wanted};
use crate::verbs::read::{self, RawOutput};
use crate::{App, to_wire};

pub(super) async fn read_output(
    Caller(app): Caller,
    Target(process): Target,
    headers: HeaderMap,
    uri: Uri,
) -> Answer {
    let query: OutputQuery = input::query(&uri)?;
    let waits = query.wait_ms.is_some();
    let answer = answer(&app, &process, &headers, query).await;
    if waits { after_a_wait(answer) } else { answer }
}

async fn answer(app: &App, process: &Process, headers: &HeaderMap, query: OutputQuery) -> Answer {
    let bytes = |raw| bytes(raw, process);
    if query.view.is_some_and(|view| view != View::Raw) {
        return ok(&read::read(app, process, &query).await?);
    }
    let raw = read::raw(app, process, &query).await?;
    // While the log can grow, and for one of two streams, offsets in the answer are not stable.
    if raw.snapshot.log_open || query.stream.is_some() {
        return Ok(bytes(raw));
    }
    let (tag, len) = (tag(&raw.snapshot), raw.body.len);
    let mut answer = match partial::wanted(headers, &tag, len) {
        Wanted::Whole => bytes(raw),
        Wanted::Nothing => not_modified(),
        Wanted::Missing => missing(len),
        Wanted::Part { first, last } => {
            let from = i64::try_from(raw.from + first).unwrap_or(i64::MAX);
            let max_bytes = Some(last - first + 1);
            let part = OutputQuery { from: Some(from), max_bytes, wait_ms: None, ..query };
            let part = read::raw(app, process, &part).await?;
            let last = first + part.body.len.saturating_sub(1);
            a_part(bytes(part), (first, last), len)
        }
    };
    set(&mut answer, header::ETAG, tag);
    set(&mut answer, header::ACCEPT_RANGES, "bytes");
    Ok(answer)
}

/// The same as long as the same bytes are there. Which process it is the path says.
fn tag(snapshot: &Snapshot) -> String {
    let gone = snapshot.extent.dropped.ranges().iter();
    let gone: String = gone.map(|range| format!("-{}.{}", range.start, range.end)).collect();
    format!("\"{}{gone}\"", snapshot.extent.len)
}

fn a_part(mut answer: Response<Body>, (first, last): (u64, u64), len: u64) -> Response<Body> {
    *answer.status_mut() = StatusCode::PARTIAL_CONTENT;
    set(&mut answer, header::CONTENT_RANGE, format!("bytes {first}-{last}/{len}"));
    answer
}

fn missing(len: u64) -> Response<Body> {
    let message = format!("the range starts past the end of the output ({len} bytes)");
    let mut answer = Refusal(Error::new(ErrorCode::RangeNotSatisfiable, message)).into_response();
    set(&mut answer, header::CONTENT_RANGE, format!("bytes */{len}"));
    answer
}

fn not_modified() -> Response<Body> {
    // A body of known length would be announced as the length of the output.
    let nothing = stream::empty::<Result<Bytes, Infallible>>();
    (StatusCode::NOT_MODIFIED, Body::from_stream(nothing)).into_response()
}

fn set(answer: &mut Response<Body>, name: impl IntoHeaderName, value: impl Display) {
    // Numbers, words and JSON in ASCII: nothing that a head cannot have.
    if let Ok(value) = HeaderValue::try_from(value.to_string()) {
        answer.headers_mut().insert(name, value);
    }
}

fn bytes(raw: RawOutput, process: &Process) -> Response<Body> {
    let RawOutput { snapshot, from, next, body } = raw;
    let len = body.len;
    let body = match body.into_parts() {
        (first, None) => Body::from(first),
        (first, Some(rest)) => Body::from_stream(stream::once(async { Ok(first) }).chain(rest)),
    };
    let mut answer = Response::new(body);
    set(&mut answer, header::CONTENT_TYPE, "application/octet-stream");
    set(&mut answer, header::CONTENT_LENGTH, len);
    set(&mut answer, head::FROM, from);
    set(&mut answer, head::NEXT, next);
    set(&mut answer, head::TOTAL, snapshot.extent.len);
    set(&mut answer, head::LOG_OPEN, snapshot.log_open);
    set(&mut answer, head::PHASE, to_wire::phase(&snapshot.phase).as_str());
    let gone = snapshot.extent.dropped.ranges().iter();
    let gone: Vec<_> = gone.map(|range| format!("{}-{}", range.start, range.end)).collect();
    if !gone.is_empty() {
        set(&mut answer, head::DROPPED, gone.join(","));
    }
    if let Some(ending) = snapshot.ending() {
        set(&mut answer, head::FINAL_LEN, ending.final_len);
        set(&mut answer, head::ENDING, ascii_json(&to_wire::ending(ending, process)));
    }
    answer
}

/// JSON that a head can carry: a holder's name may have any character.
fn ascii_json(value: &impl serde::Serialize) -> String {
    let text = json_text(value);
    let mut ascii = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_ascii() {
            ascii.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            ascii.push_str(&format!("\\u{unit:04x}"));
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
